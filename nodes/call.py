"""What a node is given beside the state: who calls, and the services it may use."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal
from uuid import UUID

from typing_extensions import TypedDict

from recuerdo.nodes.services import Services
from recuerdo.state.turn import Mode
from recuerdo.stores.postgres.key_events import PostgresKeyEvents
from recuerdo.stores.postgres.memories import Memories
from recuerdo.stores.postgres.preferences import Preferences
from recuerdo.stores.postgres.symbols import SymbolInterest
from recuerdo.stores.postgres.turns import TurnLog


@dataclass(frozen=True)
class Caller:
    """The identity of a turn. It comes from the runtime context or the config, never from editable state.

    ``user`` None is an anonymous session (LA-32); ``ticket`` is that of the reservation under which an agent
    runs the turn, None for the bare graph.
    """

    tenant: str
    assistant: str
    user: str | None
    conversation: str
    mode: Mode = "live"
    ticket: UUID | None = None


class Chunk(TypedDict):
    """A piece of a streamed turn, as nodes emit it."""

    type: Literal["token", "tool", "done"]
    text: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One node's call: the caller, the services, and where streamed chunks go."""

    caller: Caller
    services: Services
    emit: Callable[[Chunk], None]

    async def under_active(self) -> "Call":
        """The same call under the plan that is in force now: a turn begins with it."""
        return replace(self, services=await self.services.under(self.caller.tenant))

    @cached_property
    def turns(self) -> TurnLog:
        """The turn log of the caller's tenant."""
        return TurnLog(self.services.database, self.caller.tenant)

    @cached_property
    def preferences(self) -> Preferences:
        """The preferences of the caller's tenant."""
        return Preferences(self.services.database, self.caller.tenant)

    @cached_property
    def interests(self) -> SymbolInterest:
        """The symbols of interest of the caller's tenant."""
        return SymbolInterest(self.services.database, self.caller.tenant)

    @cached_property
    def events(self) -> PostgresKeyEvents:
        """The key events that the caller's assistant works with."""
        settings = self.services.plan.key_events
        return PostgresKeyEvents(
            self.services.database,
            self.caller.tenant,
            self.caller.assistant,
            shared=settings.shared_across_assistants,
            closed_days=settings.closed_days,
        )

    @cached_property
    def memories(self) -> Memories:
        """The memories of the caller's tenant."""
        return Memories(self.services.database, self.caller.tenant)
