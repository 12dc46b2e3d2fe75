"""The tool in the agent's own loop: over the turn's stores, under the caller's scope and the plan's policy (ET-1)."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from recuerdo.nodes.call import Call
from recuerdo.nodes.run_tools.memory_tool import texts
from recuerdo.nodes.run_tools.memory_tool.arguments import ASSISTANT, USER, Refused
from recuerdo.nodes.run_tools.memory_tool.operations import NOTE, Backing
from recuerdo.nodes.run_tools.memory_tool.tool import MemoryTool
from recuerdo.nodes.run_tools.tools import call_of
from recuerdo.state.turn import PendingMemory
from recuerdo.stores.memory_store.postgres import PostgresMemories
from recuerdo.stores.memory_store.protocol import UserMemories

PROPOSED = "recuerdo_proposed"
"""Key in ``configurable`` of the list that takes what the user is to be asked about (IM-34)."""


def agent_memory_tool() -> MemoryTool:
    """The tool for the plan that names ``memory``."""
    return MemoryTool(backing=_of_turn)


def scope_of(call: Call) -> dict[str, Any]:
    """The caller as tools look for it in ``configurable``; without a user in an anonymous session (ET-39)."""
    return {ASSISTANT: call.caller.assistant, USER: call.caller.user}


def _of_turn(config: RunnableConfig) -> Backing:
    call = call_of(config)
    policy = call.services.plan.memory
    inferred = policy.by_tool == "inferred"
    proposals = _Proposals(config.get("configurable", {})[PROPOSED], inferred)
    propose = proposals.take if policy.saving == "ask_first" else None
    return Backing(_TurnStore(call), call.services.clock, inferred, propose)


@dataclass(frozen=True)
class _TurnStore:
    """The memories that a turn works on; of a preview there are none (C-14)."""

    call: Call

    def memories(self, assistant: str) -> UserMemories:
        if self.call.caller.mode == "preview":
            raise Refused(texts.PREVIEW)
        services = self.call.services
        return PostgresMemories(
            services.database, services.index, services.embedder, self.call.caller.tenant, assistant
        )


@dataclass(frozen=True)
class _Proposals:
    """Keeps what the model wants to remember for the end of the turn, where the user is asked."""

    proposed: list[PendingMemory]
    inferred: bool

    def take(self, text: str, language: str, updates: UUID | None) -> None:
        self.proposed.append(
            PendingMemory(
                kind=NOTE,
                text=text,
                language=language,
                confidence=None if self.inferred else 1.0,
                quote=None,
                message_id=None,
                metadata={},
                supersedes=[],
                updates=str(updates) if updates else None,
            )
        )
