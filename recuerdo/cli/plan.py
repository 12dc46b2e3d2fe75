"""``recuerdo plan``: how an agent behaves, as signed revisions (OR-20, OR-29, IM-50, IM-52)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.table import Table

from recuerdo.cli.console import (
    complain,
    language,
    note,
    out,
    plain_text,
    print_json,
    printable,
)
from recuerdo.cli.desk import at_desk
from recuerdo.cli.options import Actor, AsJson, MaybeActor, Tenant, named
from recuerdo.state.errors import SettingsError
from recuerdo.state.sentences import Sentence, load_sentences

if TYPE_CHECKING:
    from recuerdo.governance import Governance
    from recuerdo.governance.plans import ShownRevision
    from recuerdo.state.plan import Plan
    from recuerdo.stores.plans import EmergencyStop, Revision, RevisionEntry
    from recuerdo.stores.plans.diff import Difference

sentences = load_sentences(__package__, "plan_sentences.yaml")

plan_app = typer.Typer(name="plan", help="How an agent behaves.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A plan's name.", metavar="PLAN")]
RevisionText = Annotated[str, typer.Argument(help="Such as r8.", metavar="REVISION")]
Version = Annotated[str, typer.Argument(help="Such as r8; a plan's name or YAML file is its draft.")]


@plan_app.command()
def show(
    actor: MaybeActor,
    plan: Annotated[
        str | None, typer.Argument(help="A plan's name or YAML file. Default: RECUERDO_PLAN.")
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="A signed revision, such as r8, or active.", metavar="REVISION")
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Check a draft and show it whole, defaults included; with --revision, verify and show what was signed.

    Of a plan that neither ships nor is a file, the revision in force is shown.
    """
    from recuerdo.stores.plans import is_file, load_plan, shipped_plans
    from recuerdo.stores.settings import Settings

    name = plan or Settings.load().plan
    is_draft = is_file(name) or name in shipped_plans()
    if revision is not None or (actor and not is_draft):
        _show_revision(name, revision or "active", named(actor), tenant, as_json)
        return
    if not is_draft:
        raise SettingsError(sentences("no_draft", plan=name[:60], known=", ".join(shipped_plans())))
    draft = load_plan(name)
    if is_file(name):
        _say_unknown_tools(draft)
    data = draft.model_dump(mode="json")
    if as_json:
        print_json({**data, "draft": True})
        return
    _print_yaml(data)
    note("plan_draft", plan=draft.name)


@plan_app.command("list")
def list_revisions(
    actor: Actor,
    plan: Annotated[str | None, typer.Argument(help="Default: every plan.", metavar="[PLAN]")] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """List the signed revisions, the newest first, which one is in force, and the emergency stops that are on."""

    async def work(desk: "Governance") -> "tuple[Sequence[RevisionEntry], Mapping[str, EmergencyStop]]":
        entries = await desk.plans.all(plan, actor=actor)
        stops = await desk.plans.stops(actor=actor)
        return entries, {name: stop for name, stop in stops.items() if plan in (None, name)}

    entries, stops = at_desk(tenant, work)
    if as_json:
        print_json(_entries(entries, stops))
        return
    if entries:
        out().print(_list(entries, stops))
    else:
        _print("none")
    for name, stop in stops.items():
        _say_stopped(name, stop)


@plan_app.command("compile")
def compile_plan(
    plan: Annotated[
        str,
        typer.Argument(
            help="A YAML file or the name of a plan that ships. The name of another: what its last revision says, with"
            " the proposals approved since."
        ),
    ],
    actor: Actor,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="A rule, case, tool or proposal to leave out, in later revisions too.", metavar="NAME"
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(help="An approved proposal to take in again: left out, or rolled back.", metavar="ID"),
    ] = None,
    activate: Annotated[bool, typer.Option("--activate", help="Put it in force at once.")] = False,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Make the next signed revision, with the proposals approved since; it acts once it is activated."""

    async def work(desk: "Governance") -> "Revision":
        revision = await desk.plans.compile(plan, actor=actor, without=without or (), include=include or ())
        await _warn(desk, revision, actor)
        if activate:
            await desk.plans.activate(revision.number, actor=actor, name=revision.plan.name)
        return revision

    revision = at_desk(tenant, work)
    _said("compiled_activated" if activate else "compiled", revision, as_json)
    if not as_json:
        _say_proposals(revision)


@plan_app.command()
def activate(
    plan: Name, revision: RevisionText, actor: Actor, tenant: Tenant = None, as_json: AsJson = False
) -> None:
    """Put a revision in force for the turns that begin from now on."""

    async def work(desk: "Governance") -> "Revision":
        shown = await desk.plans.show(revision, actor=actor, name=plan)
        await _warn(desk, shown.revision, actor)
        return await desk.plans.activate(revision, actor=actor, name=plan)

    _said("activated", at_desk(tenant, work), as_json)


@plan_app.command()
def rollback(
    plan: Name,
    actor: Actor,
    revision: Annotated[
        str | None, typer.Argument(help="Default: the one before.", metavar="[REVISION]")
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Return to an earlier revision."""

    async def work(desk: "Governance") -> "Revision":
        found = await desk.plans.rollback(revision, actor=actor, name=plan)
        await _warn(desk, found, actor)
        return found

    _said("activated", at_desk(tenant, work), as_json)


@plan_app.command()
def diff(
    plan: Name,
    before: Version,
    actor: MaybeActor,
    after: Annotated[
        str | None, typer.Argument(help="Default: the revision in force.", metavar="[AFTER]")
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between two revisions or drafts: fields, tools, packs, rules; two drafts need no actor."""
    from recuerdo.stores.plans.diff import differences

    old, new = _version(before), _version(after) if after else None
    if old and new:
        found = differences(old, new)
    else:
        who = named(actor)
        found = at_desk(
            tenant, lambda desk: desk.plans.diff(old or before, new or after, actor=who, name=plan)
        )
    if as_json:
        print_json([vars(difference) for difference in found])
    elif found:
        out().print(_differences(found))
    else:
        _print("same")


@plan_app.command()
def stop(
    plan: Name,
    actor: Actor,
    all_tools: Annotated[
        bool, typer.Option("--all-tools", help="Every call of a tool waits for a person.")
    ] = False,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Emergency stop: from now on no auto-approve rule holds, in turns under way too."""
    found = at_desk(tenant, lambda desk: desk.plans.stop(actor=actor, all_tools=all_tools, name=plan))
    if as_json:
        print_json({"plan": plan, "stopped": True, **vars(found)})
        return
    _say_stopped(plan, found)


@plan_app.command()
def lift(plan: Name, actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """End the emergency stop."""
    at_desk(tenant, lambda desk: desk.plans.lift(actor=actor, name=plan))
    if as_json:
        print_json({"plan": plan, "stopped": False})
        return
    _print("lifted", plan=plan)


@plan_app.command("rotate-key")
def rotate_key(actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Sign with a new key from now on; what the old one signed stays valid."""
    record = at_desk(tenant, lambda desk: desk.plans.rotate_key(actor=actor))
    if as_json:
        print_json({"key": record.key_id, "retires": record.retires})
        return
    _print("rotated", new=record.key_id, old=record.retires)


def _show_revision(name: str, revision: str, actor: str, tenant: str | None, as_json: bool) -> None:
    from recuerdo.stores.plans import is_file, load_plan

    wanted = None if revision == "active" else revision
    name = load_plan(name).name if is_file(name) else name

    async def work(desk: "Governance") -> "tuple[ShownRevision, EmergencyStop | None]":
        return (
            await desk.plans.show(wanted, actor=actor, name=name),
            await desk.plans.stopped(name, actor=actor),
        )

    shown, stop = at_desk(tenant, work)
    found = shown.revision
    data = found.plan.model_dump(mode="json")
    if as_json:
        whole = {**_data(found), "plan": data, "draft": False, "stop": stop and vars(stop)}
        print_json({**whole, "envelope": shown.envelope})
        return
    _print_yaml(data)
    key = shown.sealed.signature.key_id
    _print("shown", revision=found.reference, hash=found.sha256, signer=key)
    if stop is not None:
        complain(_stopped(name, stop))


def _say_unknown_tools(draft: "Plan") -> None:
    """A name that no tool has here may be a slip, or an app's own."""
    from recuerdo.nodes.run_tools.toolbox import refuse_unknown_tools

    try:
        refuse_unknown_tools(draft, ())
    except SettingsError as error:
        complain(error.sentence)


def _say_stopped(plan: str, stop: "EmergencyStop") -> None:
    print(printable(_stopped(plan, stop).in_language(language())))


def _stopped(plan: str, stop: "EmergencyStop") -> Sentence:
    return sentences("stopped_all" if stop.all_tools else "stopped", plan=plan)


def _version(text: str) -> "Plan | None":
    """A draft, where the text names one."""
    from recuerdo.stores.plans import is_file, load_plan, shipped_plans

    return load_plan(text) if is_file(text) or text in shipped_plans() else None


def _data(revision: "Revision") -> dict[str, Any]:
    return {
        "name": revision.plan.name,
        "revision": revision.label,
        "sha256": revision.sha256,
        "parent": revision.parent,
        "packs": dict(revision.packs),
        "included": [one.proposal for one in revision.included],
        "excluded": list(revision.excluded),
    }


async def _warn(desk: "Governance", revision: "Revision", actor: str) -> None:
    """Say what speaks against the revision: eval cases that it fails, or that nobody has tried (OR-35), and events of
    types that it no longer has (IM-18)."""
    if against := await desk.evaluations.before_activation(revision, actor=actor):
        complain(against)
    for name, events in (await desk.plans.removed_types(revision, actor=actor)).items():
        complain(sentences("type_removed", type=name, events=events))


def _said(key: str, revision: "Revision", as_json: bool) -> None:
    if as_json:
        print_json({**_data(revision), "active": key != "compiled"})
        return
    _print(key, revision=revision.reference, plan=revision.plan.name, label=revision.label)


def _say_proposals(revision: "Revision") -> None:
    """What a revision has of approved proposals and what it leaves out: nothing comes in unsaid."""
    if revision.included:
        carried = ", ".join(f"{one.proposal} ({one.change.name})" for one in revision.included)
        _print("carries", proposals=carried)
    if revision.excluded:
        _print("leaves_out", proposals=", ".join(revision.excluded))


def _print(key: str, /, **values: object) -> None:
    print(printable(sentences(key, **values).in_language(language())))


def _print_yaml(data: dict[str, Any]) -> None:
    print(printable(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=110)), end="")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(sentences(f"column_{column}").in_language(language()), overflow="fold")
    return table


def _entries(
    entries: Sequence["RevisionEntry"], stops: "Mapping[str, EmergencyStop]"
) -> list[dict[str, Any]]:
    """Each revision with the stop of its plan; a draft that is stopped has no revision."""
    on = {name: vars(stop) for name, stop in stops.items()}
    known = {entry.name for entry in entries}
    drafts = [
        {"name": name, "revision": None, "active": False, "stop": stop}
        for name, stop in on.items()
        if name not in known
    ]
    listed = [
        {**vars(entry), "revision": f"r{entry.number}", "stop": on.get(entry.name)} for entry in entries
    ]
    return listed + drafts


def _list(entries: Sequence["RevisionEntry"], stops: "Mapping[str, EmergencyStop]") -> Table:
    table = _table("plan", "revision", "level", "state", "compiled", "by", "hash")
    for entry in entries:
        when = f"{entry.compiled_at:%Y-%m-%d %H:%M %Z}"
        key = "active_stopped" if entry.name in stops else "active"
        state = sentences(key).in_language(language()) if entry.active else ""
        which = (entry.name, f"r{entry.number}", str(entry.level), state)
        table.add_row(*map(plain_text, (*which, when, entry.compiled_by, entry.sha256[:12])))
    return table


def _differences(found: Sequence["Difference"]) -> Table:
    table = _table("field", "before", "after")
    for one in found:
        table.add_row(*map(plain_text, (one.field, _shown(one.before), _shown(one.after))))
    return table


def _shown(value: Any) -> str:
    return "–" if value is None else str(value)
