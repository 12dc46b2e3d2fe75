"""``recuerdo evidence``: what happened in runs that people should look at (OR-22, A-30)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer
from rich.table import Table

from recuerdo.cli.console import checked_name, out, plain_text, print_json, speaker
from recuerdo.cli.desk import at_desk
from recuerdo.cli.options import Actor, AsJson, Tenant
from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.stores.postgres.evidence import Evidence, EvidenceKind

sentences = load_sentences(__package__, "evidence_sentences.yaml")
_say = speaker(sentences)
_approvals = load_sentences(__package__, "approvals_sentences.yaml")
_say_approval = speaker(_approvals)

evidence_app = typer.Typer(
    name="evidence", help="What happened in runs that people should look at.", no_args_is_help=True
)

_COLUMNS = ("at", "kind", "level", "revision", "conversation", "what")


@evidence_app.command("list")
def list_evidence(
    actor: Actor,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only of this kind, such as run_failed; may be given again.", metavar="KIND"),
    ] = None,
    conversation: Annotated[str | None, typer.Option(help="Only of this conversation.", metavar="ID")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 50,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """List evidence of the last 180 days, newest first."""
    from recuerdo.stores.postgres.evidence import EvidenceFilter

    checked_name("--conversation", conversation)
    which = EvidenceFilter(_kinds(kind or []), conversation=conversation)
    found = at_desk(tenant, lambda desk: desk.evidence.list(which, actor=actor, limit=limit))
    if as_json:
        print_json([vars(one) for one in found])
    else:
        out().print(_table(found) if found else plain_text(_say("none")))


def _kinds(asked: Sequence[str]) -> "tuple[EvidenceKind, ...]":
    """The kinds as asked for. Raises InputError for one that there is not."""
    from recuerdo.stores.postgres.evidence import EvidenceKind

    known = get_args(EvidenceKind)
    for kind in asked:
        if kind not in known:
            raise InputError(sentences("kind_unknown", kind=kind[:40], known=", ".join(known)))
    return cast("tuple[EvidenceKind, ...]", tuple(asked))


def _table(found: "Sequence[Evidence]") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in _COLUMNS:
        table.add_column(_say(f"column_{name}"), overflow="fold")
    for one in found:
        when = f"{one.at:%Y-%m-%d %H:%M %Z}"
        cells = (when, one.kind, str(one.level), _revision(one), one.conversation, _what(one))
        table.add_row(*map(plain_text, cells))
    return table


def _revision(one: "Evidence") -> str:
    if one.plan is None:
        return "-"
    return f"{one.plan} {_say('draft') if one.revision is None else f'r{one.revision}'}"


def _what(one: "Evidence") -> str:
    """In a line: the call with its arguments, what became of it and by whom, what was said."""
    data = one.data
    texts = [_call(one), _state(one), *(data.get(name) for name in ("error", "message", "reason"))]
    if one.kind == "pack_conflict":
        places = ("pack", "rule", "rule_says", "memory_says")
        texts.append(_say("conflict", **{place: data.get(place) for place in places}))
    return " · ".join(str(text) for text in texts if text)


def _call(one: "Evidence") -> str | None:
    arguments = one.data.get("arguments")
    if one.tool is None or not arguments:
        return one.tool
    return f"{one.tool}({', '.join(f'{name}={value}' for name, value in arguments.items())})"


def _state(one: "Evidence") -> str:
    status = f"is_{one.data.get('status')}"
    if one.kind == "reversal":
        return _say("reversed", actor=one.data.get("actor"))
    if status in _approvals:
        return f"{_say_approval(status)} {one.data.get('rule') or one.data.get('actor') or ''}".strip()
    return _say(status) if status in sentences else ""
