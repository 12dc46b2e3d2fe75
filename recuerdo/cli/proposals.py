"""``recuerdo proposals``: what the Learning Hub suggests, and what people decide on it (OR-24 to OR-30, IM-55)."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from recuerdo.cli.console import (
    checked_id,
    complain,
    language,
    out,
    plain_text,
    print_json,
    printable,
    speaker,
)
from recuerdo.cli.desk import at_desk
from recuerdo.cli.options import Actor, AsJson, Tenant
from recuerdo.state.errors import SettingsError
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from uuid import UUID

    from recuerdo.governance import Governance
    from recuerdo.governance.proposals import GovernedProposals
    from recuerdo.stores.plans.standing import Standing
    from recuerdo.stores.postgres.approvals import Decision
    from recuerdo.stores.postgres.proposals import Link, Proposal
    from recuerdo.stores.postgres.sweeps import Sweep

sentences = load_sentences(__package__, "learning_sentences.yaml")
_say = speaker(sentences)

proposals_app = typer.Typer(
    name="proposals", help="What the Learning Hub suggests; people decide.", no_args_is_help=True
)


class Status(StrEnum):
    """Which proposals are listed."""

    pending = "pending"
    approved = "approved"
    included = "included"


_SHOWN_LINKS = 1000
_LISTING = "recuerdo proposals list"
_FIRST = ("requests_decided", "would_have_passed", "share", "per_month")

Id = Annotated[str, typer.Argument(help="Id of a proposal, as the list shows it.", metavar="ID")]
Reason = Annotated[str | None, typer.Option(help="Why.")]


@proposals_app.command("list")
def list_proposals(
    actor: Actor,
    status: Annotated[Status | None, typer.Option(help="Default: all but the archive.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="The rejected ones.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 50,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """List proposals, newest first."""
    found = at_desk(
        tenant,
        lambda desk: _of(desk).list(
            status.value if status else None, actor=actor, archived=archived, limit=limit
        ),
    )
    if as_json:
        print_json([_document(one) for one in found])
    else:
        print(printable(_list(found) if found else _say("none")))


@proposals_app.command()
def show(proposal: Id, actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Show a proposal: the question, what it would change, where it stands, and what it rests on."""

    key = checked_id(proposal, _LISTING)

    async def work(desk: "Governance") -> "tuple[Proposal, Standing | None, Sequence[Link]]":
        found = await _of(desk).show(key, actor=actor)
        standing = await _standing(_of(desk), key, actor)
        return found, standing, await _of(desk).links(key, actor=actor, limit=_SHOWN_LINKS)

    found, standing, links = at_desk(tenant, work)
    if as_json:
        where = vars(standing) if standing else None
        print_json({**_document(found), "standing": where, "evidence": [vars(link) for link in links]})
    else:
        print(printable(_told(found, standing, links)))


@proposals_app.command()
def approve(
    proposal: Id, actor: Actor, reason: Reason = None, tenant: Tenant = None, as_json: AsJson = False
) -> None:
    """Approve a proposal: the next signed revision takes it in."""
    _decide(proposal, "approve", actor, reason, tenant, as_json)


@proposals_app.command()
def reject(
    proposal: Id, actor: Actor, reason: Reason = None, tenant: Tenant = None, as_json: AsJson = False
) -> None:
    """Reject a proposal: it goes to the archive."""
    _decide(proposal, "reject", actor, reason, tenant, as_json)


@proposals_app.command()
def sweep(actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Look at the evidence now; the worker does so every 6 hours."""
    found = at_desk(tenant, lambda desk: _of(desk).sweep(actor=actor))
    if as_json:
        print_json([_document(one) for one in found])
    else:
        print(printable(_list(found) if found else _say("none_new")))


@proposals_app.command()
def sweeps(actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """List the sweeps that ran, and when the next one is due."""
    found = at_desk(tenant, lambda desk: _of(desk).sweeps(actor=actor))
    if as_json:
        print_json([vars(one) for one in found])
    else:
        out().print(_sweeps(found) if found else plain_text(_say("no_sweeps")))


async def _standing(desk: "GovernedProposals", proposal: "UUID", actor: str) -> "Standing | None":
    """Where it stands; that a revision is refused is told, and the proposal can be read all the same."""
    try:
        return await desk.standing(proposal, actor=actor)
    except SettingsError as error:
        complain(error.sentence)
        return None


def _of(desk: "Governance") -> "GovernedProposals":
    return desk.proposals


def _decide(
    proposal: str, decision: "Decision", actor: str, reason: str | None, tenant: str | None, as_json: bool
) -> None:
    key = checked_id(proposal, _LISTING)
    found = at_desk(tenant, lambda desk: _of(desk).decide(key, decision, actor=actor, reason=reason))
    if as_json:
        print_json(_document(found))
    else:
        print(printable(_say(f"decided_{decision}", id=found.id, plan=found.plan)))


def _document(proposal: "Proposal") -> dict[str, Any]:
    return vars(proposal)


def _told(found: "Proposal", standing: "Standing | None", links: "Sequence[Link]") -> str:
    period = f"{found.period_from:%Y-%m-%d} – {found.period_to:%Y-%m-%d}"
    effect = ", ".join(_effect(name, found.effect[name]) for name in sorted(found.effect, key=_place))
    basis = _say(
        "basis", size=found.sample_size, period=period, effect=effect, plan=found.plan, subject=_change(found)
    )
    lines = [_headline(found), found.wording[language()], basis, *_change_in_full(found)]
    if standing is not None:
        in_force = _say("in_force", number=standing.in_force) if standing.in_force else _say("not_in_force")
        what_next = _say(f"next_{standing.next}", number=standing.since, plan=found.plan, id=found.id)
        lines.append(f"{in_force} {what_next}")
    return "\n".join([*lines, *(_link(link) for link in links)])


def _effect(name: str, value: float) -> str:
    """A figure of the estimate in words; as it is called where this program knows none."""
    key = f"effect_{name}"
    told = f"{value * 100:.0f}" if name == "share" else f"{value:.10g}"
    return _say(key, value=told) if key in sentences else f"{name} {told}"


def _place(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST)), name


def _change(found: "Proposal") -> str:
    """The change in the plan's own terms, as it would be compiled."""
    from recuerdo.state.amendment import RuleAdded

    change = found.amendment
    if isinstance(change, RuleAdded):
        return " AND ".join(f"{one.field} {one.op} {one.value}" for one in change.rule.when)
    return change.name


def _change_in_full(found: "Proposal") -> list[str]:
    """A case with the words that would be kept: who decides sees them all."""
    from recuerdo.state.amendment import EvalCaseAdded

    change = found.amendment
    return [f"  » {text}" for text in change.case.messages] if isinstance(change, EvalCaseAdded) else []


def _link(link: "Link") -> str:
    names = ("evidence", "approval", "turn", "revision")
    parts = [f"{name} {value}" for name in names if (value := getattr(link, name)) is not None]
    return "  ".join([f"{link.at:%Y-%m-%d %H:%M}", *parts])


def _state(found: "Proposal") -> str:
    decided = f"r{found.included_in}" if found.included_in else found.decided_by or ""
    return f"{_say(f'is_{found.status}')} {decided}".strip()


def _list(found: "Sequence[Proposal]") -> str:
    """Two lines each: an id has to be read whole, and a question too."""
    return "\n".join(f"{_headline(one)}\n  {one.wording[language()]}" for one in found)


def _headline(found: "Proposal") -> str:
    return f"{found.id} · {found.created_at:%Y-%m-%d} · {_say(f'kind_{found.kind}')} · {_state(found)}"


def _sweeps(found: "Sequence[Sweep]") -> Table:
    table = _columns("column_due", "column_status", "column_began", "column_evidence", "column_new")
    for one in found:
        began = f"{one.started_at:%Y-%m-%d %H:%M}" if one.started_at else "-"
        state = f"{_say(f'sweep_{one.status}')} {one.error or ''}".strip()
        counts = ("-" if n is None else str(n) for n in (one.evidence, one.proposals))
        # One that somebody asked for took the next one's place before its time had come.
        by_hand = one.started_at is not None and one.started_at < one.due_at
        due = _say("by_hand") if by_hand else f"{one.due_at:%Y-%m-%d %H:%M %Z}"
        table.add_row(*map(plain_text, (due, state, began, *counts)))
    return table


def _columns(*keys: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in keys:
        table.add_column(_say(key), overflow="fold")
    return table
