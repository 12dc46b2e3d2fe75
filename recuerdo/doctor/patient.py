"""Whom the doctor looks at: an opened agent, and one of its conversations or users."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recuerdo.doctor.finding import sentences
from recuerdo.nodes.services import Services
from recuerdo.state.errors import InputError
from recuerdo.state.plan import Plan
from recuerdo.state.turn import Mode
from recuerdo.stores.postgres.diagnosis import ConversationFacts, conversation_facts

if TYPE_CHECKING:
    from recuerdo.agent import Agent


@dataclass(frozen=True)
class Patient:
    """``user`` is who complains, ``actor`` who looks: looking at key events is audited (IM-16)."""

    services: Services
    tenant: str
    assistant: str
    mode: Mode
    actor: str
    conversation: str | None = None
    user: str | None = None
    facts: ConversationFacts | None = None

    @classmethod
    def of(cls, agent: "Agent", conversation: str | None, user: str | None, actor: str) -> "Patient":
        """The agent's conversation or user."""
        return cls(agent.services, agent.tenant, agent.assistant, agent.mode, actor, conversation, user)

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self.services.plan

    async def examined(self) -> "Patient":
        """With the plan in force and the facts of the conversation. InputError when there is no such conversation."""
        services = await self.services.under(self.tenant)
        if self.conversation is None:
            return replace(self, services=services)
        facts = await conversation_facts(services.database, self.tenant, self.conversation)
        if facts is None:
            raise InputError(sentences("conversation_unknown", conversation=self.conversation[:100]))
        return replace(self, services=services, facts=facts, user=self.user or facts.user)
