"""``recuerdo eval``: a plan tried with its eval cases, before it is put in force (OR-35)."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from recuerdo.cli.console import out, plain_text, print_json, speaker
from recuerdo.cli.desk import at_desk
from recuerdo.cli.options import Actor, AsJson, PlanName, Tenant
from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.governance import Governance
    from recuerdo.stores.postgres.eval_cases import CaseResult, EvalRun

sentences = load_sentences(__package__, "learning_sentences.yaml")
_say = speaker(sentences)


def evaluate(
    actor: Actor,
    plan: PlanName = None,
    revision: Annotated[
        str | None,
        typer.Option(
            help="Such as r8, in force or not. Default: the one in force; of a YAML file, its draft.",
            metavar="REVISION",
        ),
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Try a plan's eval cases with the model that is set; exit code 1 when one fails. No tool changes anything."""
    from recuerdo.governance.arguments import checked_revision

    number = None if revision is None else checked_revision(revision)
    run = at_desk(tenant, lambda desk: _run(desk, plan, number, actor), model=True)
    if as_json:
        print_json(_document(run))
    else:
        out().print(_table(run))
    if run.failed:
        raise InputError(sentences("eval_failed", failed=len(run.failed), cases=len(run.results)))


async def _run(desk: "Governance", plan: str | None, number: int | None, actor: str) -> "EvalRun":
    """A revision, whether or not it was ever in force; of a file without one its draft, where drafts may run."""
    from recuerdo.stores.plans import is_file, load_draft, load_plan
    from recuerdo.stores.settings import Settings

    settings = await asyncio.to_thread(Settings.load)
    plan = plan or settings.plan
    if is_file(plan) and number is None:
        draft = await asyncio.to_thread(load_draft, plan, allowed=settings.drafts)
        return await desk.evaluations.run_draft(draft, actor=actor)
    name = (await asyncio.to_thread(load_plan, plan)).name if is_file(plan) else plan
    if number is None:
        number = (await desk.plans.show(actor=actor, name=name)).revision.number
    return await desk.evaluations.run(name, number, actor=actor)


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
