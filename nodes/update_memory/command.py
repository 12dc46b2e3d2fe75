"""``#MEMORY# text``: the user's own command to remember something of him, word for word (IM-31)."""

import asyncio
import re
from dataclasses import dataclass, field

from recuerdo.nodes.call import Call
from recuerdo.nodes.run_tools.memory_tool.operations import NOTE
from recuerdo.state.errors import InputError
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.state.turn import TurnInfo
from recuerdo.stores.postgres.memories import NewMemory
from recuerdo.stores.postgres.memories.rows import checked_text
from recuerdo.stores.sensitive import redact

sentences = load_sentences(__package__, "saving_sentences.yaml")

_COMMAND = re.compile(r"\s*#MEMORY#(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Commanded:
    """What a command stores, or what is wrong with it."""

    memories: list[NewMemory] = field(default_factory=list)
    fault: Sentence | None = None


def commanded_text(message: str) -> str | None:
    """What follows ``#MEMORY#``, without blanks around it and perhaps empty; None: the message is no command."""
    match = _COMMAND.fullmatch(message)
    return match.group(1).strip() if match else None


async def read_command(turn: TurnInfo, call: Call) -> Commanded | None:
    """The command in the turn's message; None when it is none, or the plan has no commands."""
    # In the text as it was sent: the marker is none of what may be taken out as sensitive.
    text = commanded_text(turn["text"]) if call.services.plan.memory.command else None
    if text is None:
        return None
    if fault := _fault(text, call):
        return Commanded(fault=fault)
    clean = await asyncio.to_thread(redact, text)
    memory = NewMemory(
        kind=NOTE,
        text=clean.text,
        language=turn["language"],
        confidence=1.0,
        quote=turn["redacted"],
        # Without its message: what the user ordered counts also while that stands in the history.
        message_id=None,
        once=True,
    )
    return Commanded([memory])


def _fault(text: str, call: Call) -> Sentence | None:
    if call.caller.mode == "preview":
        return sentences("command_in_preview")
    if call.caller.user is None:
        return sentences("command_anonymous")
    if not text:
        return sentences("command_empty")
    try:
        checked_text(text)
    except InputError as error:
        return error.sentence
    return None
