"""``recuerdo memory remember``, ``recall``, ``correct``, ``why`` and ``forget-all``: the user's own rights (IM-43)."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from recuerdo.cli.console import complain, is_terminal, out, plain_text, print_json, say, speaker
from recuerdo.cli.options import AsJson, Assistant, PlanName, Tenant, User
from recuerdo.demo import SAMPLE_USER
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.stores.recall.search import Recalled

sentences = load_sentences(__package__, "memory_rights_sentences.yaml")
_said = speaker(sentences)

Item = Annotated[str, typer.Argument(help="Number in the list, key of a preference, or id of a memory.")]
Text = Annotated[str, typer.Argument(help="The text, at most 4,000 characters.")]
Limit = Annotated[int, typer.Option(min=1, max=100, help="How many at most.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def add_rights(app: typer.Typer) -> None:
    """Put these commands under ``app``."""
    for command in (remember, recall, correct, why):
        app.command()(command)
    app.command("forget-all")(forget_all)


def remember(
    text: Text,
    user: User = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Keep a text for 90 days."""
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(user, tenant, assistant, plan)) as agent:
        kept = agent.run_sync(agent.memory.remember(text, user=user or SAMPLE_USER))
    if as_json:
        print_json(vars(kept))
    else:
        print(_said("remembered", text=kept.text, memory=kept.id))


def recall(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    limit: Limit = 5,
    user: User = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Show the memories that answer a question best, best first."""
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(user, tenant, assistant, plan)) as agent:
        found = agent.run_sync(agent.memory.recall(query, user=user or SAMPLE_USER, limit=limit))
    if as_json:
        print_json([{**vars(hit.memory), "score": hit.score} for hit in found])
    elif not found:
        print(_said("nothing_found"))
    else:
        out().print(_table([(_hit(hit), hit.memory.text) for hit in found]))


def correct(
    item: Item,
    text: Annotated[str, typer.Argument(help="What is right.")],
    user: User = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Correct one item; the old text stays in its history."""
    from recuerdo.cli.memory_view import Remembered
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(user, tenant, assistant, plan)) as agent:
        corrected = Remembered.read(agent, user or SAMPLE_USER).correct(agent, item, text)
    if as_json:
        print_json({"user": user or SAMPLE_USER, "corrected": corrected, "value": text})
    else:
        print(_said("corrected", item=corrected, text=text))


def why(
    item: Item,
    user: User = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Show why an item is remembered: the words, when, and what it said before."""
    from recuerdo.cli.memory_view import Remembered
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(user, tenant, assistant, plan)) as agent:
        reasons = Remembered.read(agent, user or SAMPLE_USER).why(agent, item)
    if as_json:
        print_json(reasons)
    else:
        out().print(
            _table([(name, _shown(value)) for name, value in reasons.items() if value not in (None, [])])
        )


def forget_all(user: User = None, tenant: Tenant = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Forget a user: memories, preferences, symbols, events, conversations; only ids stay, in the audit."""
    from recuerdo.cli.session import Identity, open_stores

    if not yes and not _confirmed(user or SAMPLE_USER):
        complain(sentences("not_confirmed"))
        raise typer.Exit(1)
    with open_stores(Identity(user, tenant)) as agent:
        gone = agent.run_sync(agent.memory.forget_all(user=user or SAMPLE_USER))
    if as_json:
        print_json(
            {"user": user or SAMPLE_USER, "remembered": gone.remembered, "conversations": gone.conversations}
        )
    else:
        print(_said("forgotten_all", count=gone.remembered, conversations=gone.conversations))


def _hit(hit: "Recalled") -> str:
    return f"{hit.score:.2f}  {say('level', level=hit.memory.level)}"


def _confirmed(user: str) -> bool:
    return is_terminal() and typer.confirm(_said("confirm_forget_all", user=user))


def _table(rows: list[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(plain_text(name), plain_text(text))
    return table


def _shown(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
