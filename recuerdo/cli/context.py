"""``recuerdo context``: what went into a turn's prompt."""

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from recuerdo.cli.console import checked_name, out, print_json, sentences
from recuerdo.cli.options import AsJson, Tenant, User
from recuerdo.demo import SAMPLE_USER

if TYPE_CHECKING:
    from recuerdo.agent import Agent
    from recuerdo.state.record import TurnRecord
    from recuerdo.state.usage import Usage

context_app = typer.Typer(name="context", help="What went into a turn's prompt.", no_args_is_help=True)


@context_app.callback()
def context() -> None:
    """What went into a turn's prompt."""


@context_app.command()
def show(
    conversation: Annotated[
        str | None, typer.Option(help="Its newest turn. Default: the user's newest.", metavar="ID")
    ] = None,
    turn: Annotated[UUID | None, typer.Option(help="This turn.", metavar="ID")] = None,
    user: User = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Show blocks, tokens, compression steps, the estimate and the cost of a turn."""
    from recuerdo.cli.record_view import record_view
    from recuerdo.cli.session import Identity, open_stores

    checked_name("--conversation", conversation)
    with open_stores(Identity(user, tenant)) as agent:
        record = agent.run_sync(find_record(agent, user or SAMPLE_USER, conversation, turn))
        used = agent.run_sync(agent.conversations.usage(record.conversation, user=user or SAMPLE_USER))
    if as_json:
        print_json({**record.model_dump(mode="json"), "conversation_usage": _as_data(used)})
    else:
        out().print(record_view(record, used))


def _as_data(used: "Usage") -> dict[str, Any]:
    return {**used.as_json(), "uncached": used.uncached, "saved_share": used.saved_share}


async def find_record(
    agent: "Agent", user: str, conversation: str | None, turn: UUID | None = None
) -> "TurnRecord":
    """The record of that turn, else of the newest one of the conversation or of the user.

    Raises InputError when the user has none.
    """
    from recuerdo.state.errors import InputError

    if turn is None:
        record = await agent.conversations.newest_record(conversation, user=user)
    else:
        record = await agent.conversations.record(turn, user=user)
    if record is None:
        raise InputError(sentences("record_missing", user=user))
    return record
