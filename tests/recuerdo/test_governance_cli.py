"""``recuerdo plan``, ``audit`` and ``roles`` on the command line."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from recuerdo.stores.plans import load_plan
from tests.recuerdo.carlos import House
from tests.recuerdo.command import Command, Result


@pytest.fixture
def run(run_recuerdo: Command, monkeypatch: pytest.MonkeyPatch, house: House) -> Command:
    """``recuerdo``, on the run's PostgreSQL, in a tenant with an owner and a supervisor."""
    monkeypatch.setenv("DATABASE_URL", house.database_url)
    monkeypatch.setenv("RECUERDO_TENANT", "t9")
    monkeypatch.setenv("RECUERDO_ACTOR", "sara")
    assert run_recuerdo("roles", "appoint", "olga").code == 0
    assert run_recuerdo("roles", "grant", "sara", "supervisor", "--actor", "olga").code == 0
    return run_recuerdo


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    plan = load_plan("trading").model_copy(update={"name": "mine"})
    path.write_text(yaml.safe_dump(plan.model_dump(mode="json"), allow_unicode=True), encoding="utf-8")
    return path


def change(file: Path, **fields: Any) -> None:
    plan = yaml.safe_load(file.read_text(encoding="utf-8"))
    file.write_text(yaml.safe_dump({**plan, **fields}, allow_unicode=True), encoding="utf-8")


def one_line(result: Result) -> bool:
    return result.code == 1 and result.out == "" and result.err.count("\n") == 1


def test_or_29_im_50_compile_activate_diff_and_roll_back(run: Command, file: Path) -> None:
    first = run("plan", "compile", str(file), "--actor", "sara", "--activate", "--json").document
    assert (first["revision"], first["active"], first["parent"]) == ("r1", True, None)
    change(file, tools=["get_quote"], four_eyes=["get_quote"])
    second = run("plan", "compile", str(file), "--actor", "sara")
    assert "mine r2" in second.out and "recuerdo plan activate mine r2" in second.out
    listed = run("plan", "list", "mine", "--json").document
    assert [(one["revision"], one["active"], one["level"]) for one in listed] == [
        ("r2", False, 3),
        ("r1", True, 3),
    ]
    fields = {one["field"] for one in run("plan", "diff", "mine", "r1", "r2", "--json").document}
    assert fields == {"four_eyes[get_quote]", "tools[read_tool_result]"}
    assert run("plan", "diff", "mine", str(file), "r2").out == "There is no difference.\n"
    assert "mine r2" in run("plan", "activate", "mine", "r2", "--actor", "olga").out
    assert "mine r1" in run("plan", "rollback", "mine", "--actor", "sara").out
    shown = run("plan", "show", "mine", "--revision", "active", "--json").document
    assert (shown["revision"], shown["sha256"], shown["draft"]) == ("r1", first["sha256"], False)
    assert shown["envelope"]["payloadType"] == "application/vnd.recuerdo.plan+json"
    said = run("plan", "show", "mine", "--revision", "r2").out
    assert yaml.safe_load(said)["four_eyes"] == ["get_quote"] and "signature valid" in said
    assert "mine" in run("plan", "list").out


def test_im_52_stop_and_lift(run: Command) -> None:
    assert "no rule approves by itself" in run("plan", "stop", "trading", "--actor", "sara").out
    stop = run("plan", "stop", "trading", "--actor", "sara", "--all-tools", "--json").document
    assert (stop["stopped"], stop["all_tools"]) == (True, True)
    assert "owner" in run("plan", "lift", "trading", "--actor", "sara").err
    assert run("plan", "lift", "trading", "--actor", "olga", "--json").document["stopped"] is False


def test_im_52_a_stop_of_a_plan_that_is_not_there_is_refused(run: Command, file: Path) -> None:
    for slip in ("hotell", "Trading", " trading", "x" * 5000, "traiding"):
        refused = run("plan", "stop", slip, "--all-tools")
        assert one_line(refused) and len(refused.err) < 300
    assert "Use one of these: hotel, trading" in run("plan", "stop", "hotell").err
    assert run("plan", "stop", "").code == 1
    assert not [one for one in run("audit", "list", "--json").document if one["action"] == "plan.stopped"]
    # The draft of a file may run in an app, known nowhere else.
    assert one_line(run("plan", "stop", "mine"))
    assert run("plan", "stop", str(file), "--json").document["stopped"] is True
    entries = run("audit", "list", "--json").document
    assert (entries[0]["action"], entries[0]["subject"]) == ("plan.stopped", "mine")
    assert run("plan", "lift", "mine", "--actor", "olga").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "compile", "trading", "--actor", "ana"), "needs the role supervisor / owner"),
        (("plan", "compile", "nothing", "--actor", "sara"), "no plan named nothing"),
        (("plan", "compile", "trading", "--without", "x", "--actor", "sara"), "no proposal called"),
        (("plan", "activate", "trading", "r7", "--actor", "sara"), "no revision r7"),
        (("plan", "activate", "trading", "seven", "--actor", "sara"), "write it as r8"),
        (("plan", "rollback", "trading", "--actor", "sara"), "trading has no signed revision"),
        (("plan", "lift", "trading", "--actor", "olga"), "not under an emergency stop"),
        (("plan", "rotate-key", "--actor", "sara"), "needs the role owner"),
        (("plan", "show", "trading", "--revision", "active"), "trading has no signed revision"),
        (("roles", "appoint", "ana"), "There is an owner already"),
        (("roles", "grant", "ana", "king", "--actor", "olga"), "no role"),
        (("roles", "revoke", "olga", "--actor", "olga"), "only owner"),
        (("audit", "verify", "--anchor", "x"), "NUMBER:HASH"),
    ],
)
def test_or_20_what_may_not_be_is_said_in_one_line(
    run: Command, arguments: tuple[str, ...], message: str
) -> None:
    result = run(*arguments)
    assert one_line(result) and message in result.err


def test_or_21_a_file_with_a_rule_of_its_own_is_refused(run: Command, file: Path) -> None:
    condition = {"field": "symbol", "op": "==", "value": "AAPL"}
    change(file, auto_approve_rules=[{"id": "cheap", "tool": "get_quote", "when": [condition]}])
    result = run("plan", "compile", str(file), "--actor", "olga")
    assert one_line(result) and "cheap" in result.err


def test_or_20_a_draft_is_refused_or_runs_marked(
    run: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = ("chat", "--plan", str(file), "--message", "hola", "--user", "u1", "--json")
    refused = run(*chat)
    assert one_line(refused) and "RECUERDO_DRAFTS=1" in refused.err
    monkeypatch.setenv("RECUERDO_DRAFTS", "1")
    assert run(*chat).document["record"]["draft"] is True


def test_a_28_rotate_the_key(run: Command, file: Path) -> None:
    assert run("plan", "compile", str(file), "--actor", "sara", "--activate").code == 0
    rotated = run("plan", "rotate-key", "--actor", "olga", "--json").document
    assert rotated["key"] != rotated["retires"]
    assert run("plan", "show", "mine", "--revision", "r1").code == 0


def test_or_29_the_audit_is_listed_verified_and_found_broken(run: Command, house: House) -> None:
    assert run("plan", "stop", "trading", "--actor", "sara").code == 0
    entries = run("audit", "list", "--json").document
    assert [(one["actor"], one["action"]) for one in entries] == [
        ("sara", "plan.stopped"),
        ("olga", "role.granted"),
        ("olga", "role.granted"),
    ]
    assert "plan.stopped" in run("audit", "list", "--subject", "trading", "--limit", "1").out
    sound = run("audit", "verify", "--json").document
    assert (sound["ok"], sound["entries"]) == (True, 3)
    assert run("audit", "verify", "--anchor", sound["anchor"]).code == 0
    assert sound["anchor"] in run("audit", "verify").out
    with psycopg.connect(house.database_url, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute("delete from recuerdo.governance_audit where number = 2")
    broken = run("audit", "verify")
    assert one_line(broken) and "entry 2 is missing" in broken.err
    document = run("audit", "verify", "--json")
    assert document.code == 1
    assert (document.document["ok"], document.document["fault"], document.document["at"]) == (
        False,
        "missing",
        2,
    )


def test_or_11_roles_are_listed(run: Command) -> None:
    assert run("roles", "list", "--json").document == {"olga": "owner", "sara": "supervisor"}
    assert "sara" in run("roles", "list").out
    assert run("roles", "revoke", "sara", "--actor", "olga", "--json").document == {
        "user": "sara",
        "role": "user",
        "changed": True,
    }
    nobody = run("roles", "list", "--tenant", "t8")
    assert one_line(nobody) and "recuerdo roles appoint NAME" in nobody.err
