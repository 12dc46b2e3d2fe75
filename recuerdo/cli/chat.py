"""``recuerdo chat``: talk to the agent, on a terminal or with one message."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recuerdo.cli.console import checked_name, is_terminal, out, piped_text, plain_text, print_json, say
from recuerdo.cli.options import AsJson, Assistant, Conversation, PlanName, Tenant, User

if TYPE_CHECKING:
    from recuerdo.cli.session import Session
    from recuerdo.turn import Turn


def chat(
    user: User = None,
    conversation: Conversation = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    preview: Annotated[bool, typer.Option(help="Neither read nor write memory.")] = False,
    message: Annotated[
        str | None, typer.Option(help="One message instead of a chat. Also from standard input.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Talk to the agent: as a chat on a terminal, else with one message."""
    talks = message is None and is_terminal()
    if talks and as_json:
        raise typer.BadParameter(say("json_needs_message"), param_hint="--json")
    text = piped_text() if message is None and not talks else message
    from recuerdo.cli.session import Identity, open_session
    from recuerdo.cli.talk import Talk
    from recuerdo.nodes.receive.message import check_message

    if text is not None:
        check_message(text)
    identity = Identity(user, tenant, assistant, plan)
    checked_name("--conversation", conversation)
    with open_session(identity, conversation, "preview" if preview else "live") as session:
        if text is None:
            Talk(session).run()
        elif as_json:
            print_json(as_data(session, session.ask(text)))
        else:
            out().print(plain_text(session.ask(text).reply), soft_wrap=True)


def as_data(session: "Session", turn: "Turn") -> dict[str, Any]:
    """A turn as plain data for JSON."""
    return {
        "reply": turn.reply,
        "conversation": turn.conversation,
        "turn": turn.id,
        "user": session.user,
        "record": turn.record.model_dump(mode="json"),
        "context": turn.context,
    }
