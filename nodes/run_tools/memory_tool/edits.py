"""What the calls of one message changed in the user's memories, for the end of the turn (ET-9).

It is read from the calls and their answers, so a call that ran before the turn was resumed counts too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from uuid import UUID

from langchain_core.messages import ToolMessage

from recuerdo.nodes.call import Call
from recuerdo.nodes.run_tools.memory_tool.arguments import as_id
from recuerdo.nodes.run_tools.memory_tool.tool import MemoryTool
from recuerdo.nodes.run_tools.requested import Requested
from recuerdo.state.errors import StoreError
from recuerdo.state.turn import MemoryEdit

_GIVEN_ID = re.compile(r"\(memory_id: ([0-9a-f-]{36})\)\Z")


async def texts_before(calls: Sequence[Requested], call: Call) -> dict[UUID, str]:
    """What the memories say that the calls are about to change. With the store away, nothing: the calls say so."""
    named = [key for one in calls if _mode(one) in ("update", "delete") and (key := _named(one))]
    user = call.caller.user
    if not named or user is None or call.caller.mode == "preview":
        return {}
    try:
        found = await call.memories.get(named, call.caller.assistant, user, call.services.clock())
    except StoreError:
        return {}
    return {memory.id: memory.text for memory in found}


def memory_edits(
    calls: Sequence[Requested], results: Sequence[ToolMessage], before: Mapping[UUID, str]
) -> list[MemoryEdit]:
    """The changes that were made; ``results`` are the whole answers, in the order of the calls.

    What the user is to be asked about first is no change yet (IM-34).
    """
    done = [(one, result) for one, result in zip(calls, results, strict=True) if result.status == "success"]
    changed = (key for one, result in done if (key := _changed(one, result)))
    return [MemoryEdit(id=str(key), before=before.get(key)) for key in changed]


def _changed(one: Requested, result: ToolMessage) -> UUID | None:
    match _mode(one):
        case "add" | "update":
            given = _GIVEN_ID.search(json.loads(str(result.text))["result"])
            return UUID(given.group(1)) if given else None
        case "delete":
            return _named(one)
    return None


def _mode(one: Requested) -> object:
    """What a call asks of our tool; None: it is a call of another one."""
    return one.arguments.get("mode") if isinstance(one.tool, MemoryTool) else None


def _named(one: Requested) -> UUID | None:
    memory_id = one.arguments.get("memory_id")
    return as_id(memory_id) if isinstance(memory_id, str) else None
