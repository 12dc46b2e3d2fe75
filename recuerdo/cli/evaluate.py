"""``recuerdo eval``: a plan tried with its eval cases, before it is put in force (OR-35)."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from recuerdo.cli.console import out, plain_text, print_json, speaker
from recuerdo.cli.options import Actor, AsJson, PlanName, Tenant
from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.agent import Agent
    from recuerdo.stores.postgres.eval_cases import CaseResult, EvalRun

sentences = load_sentences(__package__, "learning_sentences.yaml")
_say = speaker(sentences)


def evaluate(
    actor: Actor,
    plan: PlanName = None,
    revision: Annotated[
        str | None,
        typer.Option(
            help="Such as r8. Default: the one in force; of a YAML file, its draft.", metavar="REVISION"
        ),
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Try a plan's eval cases with the model that is set; exit code 1 when one fails. No tool changes anything."""
    from recuerdo.cli.session import Identity, open_with_model

    number = _number(revision)
    with open_with_model(Identity(None, tenant, None, plan)) as agent:
        run = agent.run_sync(_run(agent, number, actor))
    if as_json:
        print_json(_document(run))
    else:
        out().print(_table(run))
    if run.failed:
        raise InputError(sentences("eval_failed", failed=len(run.failed), cases=len(run.results)))


async def _run(agent: "Agent", number: int | None, actor: str) -> "EvalRun":
    from recuerdo.governance.evaluations import Evaluations

    return await Evaluations(agent.services, agent.tenant).run(number=number, actor=actor)


def _number(revision: str | None) -> int | None:
    if revision is None:
        return None
    found = re.fullmatch(r"r?([1-9][0-9]{0,8})", revision.strip())
    if not found:
        raise InputError(sentences("eval_revision", text=revision[:40]))
    return int(found[1])


def _document(run: "EvalRun") -> dict[str, Any]:
    return {
        "plan": run.tried.plan,
        "revision": f"r{run.tried.revision}" if run.tried.revision else None,
        "draft": run.tried.revision is None,
        "sha256": run.tried.sha256,
        "model": run.tried.model,
        "cases": len(run.results),
        "passed": len(run.results) - len(run.failed),
        "results": [vars(result) for result in run.results],
    }


def _table(run: "EvalRun") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in ("column_case", "column_result", "column_failures"):
        table.add_column(_say(key), overflow="fold")
    for result in run.results:
        table.add_row(*_cells(result))
    return table


def _cells(result: "CaseResult") -> tuple[Any, ...]:
    failures = [failure.partition(": ") for failure in result.failures]
    told = "; ".join(_say(f"eval_{name}", what=what) for name, _, what in failures)
    state = plain_text(_say("passed"), "green") if result.passed else plain_text(_say("failed"), "red")
    return plain_text(result.case), state, plain_text(told)
