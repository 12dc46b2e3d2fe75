"""``recuerdo audit``: the chain of what governed the agents of a tenant, read and verified."""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from recuerdo.cli.console import language, out, plain_text, print_json, printable
from recuerdo.cli.desk import at_desk
from recuerdo.cli.options import Actor, AsJson, Tenant
from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.stores.postgres.governance_audit import GovernanceEntry

sentences = load_sentences(__package__, "audit_sentences.yaml")

audit_app = typer.Typer(name="audit", help="What was decided, by whom and when.", no_args_is_help=True)


@audit_app.command()
def verify(
    anchor: Annotated[
        str | None,
        typer.Option(help="An entry noted earlier, that must still be there.", metavar="NUMBER:HASH"),
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Check that nothing was changed, removed, moved or cut off; exit code 1 when something was.

    Takes no actor: it must work where the roles themselves were tampered with.
    """
    from recuerdo.stores.postgres.governance_audit import Anchor

    noted = Anchor.parse(anchor) if anchor else None
    found = at_desk(tenant, lambda desk: desk.audit.verify(noted))
    if as_json:
        last = str(found.last) if found.last else None
        print_json(
            {
                "ok": found.fault is None,
                "entries": found.entries,
                "anchor": last,
                "fault": found.fault,
                "at": found.at,
                "subject": found.subject,
            }
        )
    if found.fault:
        raise StoreError(sentences(f"fault_{found.fault}", number=found.at, subject=found.subject))
    if not as_json:
        key = "sound" if found.last else "empty"
        print(sentences(key, entries=found.entries, anchor=found.last).in_language(language()))


@audit_app.command("list")
def list_entries(
    actor: Actor,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 50,
    before: Annotated[int | None, typer.Option(help="Only those below this number.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only of this plan, pack, user or proposal.")] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """List the newest entries first."""
    entries = at_desk(
        tenant, lambda desk: desk.audit.entries(actor=actor, limit=limit, before=before, subject=subject)
    )
    if as_json:
        print_json([_entry(entry) for entry in entries])
    elif entries:
        out().print(_list(entries))
    else:
        print(printable(sentences("empty").in_language(language())))


def _entry(entry: "GovernanceEntry") -> dict[str, Any]:
    return {**vars(entry), "details": json.loads(entry.details), "hash": entry.hash.hex()}


def _list(entries: Sequence["GovernanceEntry"]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("number", "at", "actor", "action", "subject", "details"):
        table.add_column(sentences(f"column_{column}").in_language(language()), overflow="fold")
    for one in entries:
        when = f"{one.at:%Y-%m-%d %H:%M:%S %Z}"
        cells = (str(one.number), when, one.actor, one.action, one.subject, _told(one))
        table.add_row(*map(plain_text, cells))
    return table


def _told(entry: "GovernanceEntry") -> str:
    """What changed and the details, as far as they are words: a hash says nothing to a reader, and is in the JSON."""
    words = [value if value and not _HASH.fullmatch(value) else "" for value in (entry.before, entry.after)]
    change = " → ".join(word or "–" for word in words) if any(words) else ""
    details = [f"{name} {_listed(value)}" for name, value in json.loads(entry.details).items() if value]
    return ", ".join(part for part in (change, *details) if part and not _HASH.search(part))


def _listed(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


_HASH = re.compile("[0-9a-f]{64}")
