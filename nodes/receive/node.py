"""Step 1 of the turn: take the message, the caller and the plan in force; open the turn's row (RF-46)."""

import asyncio
from datetime import timedelta
from typing import Literal
from uuid import NAMESPACE_URL, UUID, uuid5

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage

from recuerdo.nodes.call import Call
from recuerdo.nodes.failure import failed
from recuerdo.nodes.receive.language import spoken_language, told_language
from recuerdo.nodes.receive.message import LEASE, check_message, is_text
from recuerdo.state.errors import InputError, RecuerdoError
from recuerdo.state.key_events import reads_later
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import TurnInfo, TurnState, TurnUpdate
from recuerdo.stores.postgres.turns import NewTurn
from recuerdo.stores.sensitive import redact
from recuerdo.stores.sources.registry import SourceQuery

sentences = load_sentences(__package__)


async def receive(state: TurnState, call: Call) -> TurnUpdate:
    """Open the turn. A message that cannot be taken is refused and leaves nothing behind."""
    messages = list(state.get("messages") or [])
    # The system prompt is the plan's: one that an app sends along would take its place (known faults, 22).
    strangers: list[BaseMessage] = [
        RemoveMessage(id=str(m.id)) for m in messages if isinstance(m, SystemMessage)
    ]
    # Images and files are not counted, so none may stand in the thread, wherever an app puts them.
    not_text = [m for m in messages if isinstance(m, HumanMessage) and not is_text(m.content)]
    try:
        if not_text:
            raise InputError(sentences("message_with_files"))
        message = _newest(messages)
        text = check_message(message.text)
        call = await call.under_active()
        turn = await _begin(state, call, message, text)
    except RecuerdoError as error:
        newest = [m for m in messages[-1:] if isinstance(m, HumanMessage)]
        refused = dict.fromkeys(str(m.id) for m in [*not_text, *newest])
        removed: list[BaseMessage] = [RemoveMessage(id=key) for key in refused]
        return {**failed(error), "messages": [*strangers, *removed], "work": None}
    return {"error": None, "messages": strangers, "work": {"turn": turn}}


def after_receive(state: TurnState) -> Literal["build_context", "update_memory"]:
    """A refused message ends the turn."""
    return "update_memory" if state.get("error") else "build_context"


def _newest(messages: list[AnyMessage]) -> HumanMessage:
    if not messages or not isinstance(messages[-1], HumanMessage):
        raise InputError(sentences("message_missing"))
    return messages[-1]


async def _begin(state: TurnState, call: Call, message: HumanMessage, text: str) -> TurnInfo:
    caller, now = call.caller, call.services.clock()
    # Off the loop: the first look loads a model and tables, and a long message takes a while.
    told, redacted = await asyncio.to_thread(_read, text)
    language = told or spoken_language(state.get("language") or "") or await _own_language(call)
    turn_id = _turn_id(state, call, message, text)
    parent = state.get("last_turn")
    number = await call.turns.begin(
        NewTurn(
            id=turn_id,
            conversation=caller.conversation,
            assistant=caller.assistant,
            user=caller.user,
            parent=UUID(parent) if parent else None,
            mode=caller.mode,
            at=now,
            language=language,
            message_id=str(message.id),
            text=text,
            ticket=caller.ticket,
            events_unread=caller.mode == "live" and reads_later(call.services.plan),
        ),
        lease=LEASE,
        # The thread was read before this node ran: a turn that waited here would go on from a stale state.
        wait=timedelta(),
    )
    return TurnInfo(
        id=str(turn_id),
        number=number,
        parent=parent,
        message_id=str(message.id),
        now=now.isoformat(),
        language=language,
        mode=caller.mode,
        text=text,
        redacted=redacted,
        revision=call.services.revision.sha256 if call.services.revision else None,
    )


def _turn_id(state: TurnState, call: Call, message: HumanMessage, text: str) -> UUID:
    """The same turn replayed has the same id, so it writes nothing twice; a fork is another turn."""
    caller = call.caller
    parts = (caller.tenant, caller.conversation, state.get("last_turn") or "", str(message.id), text)
    return uuid5(NAMESPACE_URL, "\x1f".join(parts))


def _read(text: str) -> tuple[str | None, str]:
    """The language that the message shows, if it does, and its text without sensitive data."""
    return told_language(text), redact(text).text


async def _own_language(call: Call) -> str:
    """Of a conversation that has shown none yet: the user's by his profile, else the plan's (RF-20)."""
    query = SourceQuery(call.caller.tenant, call.caller.user, (), call.services.clock())
    profile = (await call.services.sources.fetch("profile", query)).value
    return (spoken_language(profile.language) if profile else None) or call.services.plan.language
