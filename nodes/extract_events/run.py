"""Which conversations are read, by which extractor, and that what one gave is written once (LA-26, IM-6, IM-7)."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from recuerdo.nodes.call import Call, Caller
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.nodes.extract_events.model import ModelExtractor
from recuerdo.nodes.extract_events.protocol import READ, EventExtractor, Extracted, Heard
from recuerdo.nodes.extract_events.rules import RulesExtractor
from recuerdo.nodes.services import Services
from recuerdo.state.errors import InputError, SettingsError, StoreError
from recuerdo.state.key_events import are_active
from recuerdo.state.sentences import load_sentences
from recuerdo.state.usage import usage_of
from recuerdo.stores.postgres.key_events import PostgresKeyEvents
from recuerdo.stores.postgres.key_events.extraction import (
    Claimed,
    Extraction,
    ExtractionLog,
    Reach,
    Reading,
    Reason,
    Spoken,
    due_conversations,
    waiting_tenants,
    whose_conversation,
)
from recuerdo.stores.sensitive import redact

_log = logging.getLogger(__name__)
sentences = load_sentences(__package__)

PERIOD = timedelta(seconds=30)
"""How often the worker looks for conversations that have ended."""

KNOWN = 20
"""Open events of the owner's that an extractor is shown."""

TRIES = 3
"""Failures of the model after which the rules read a conversation: then it waits no longer."""

PAUSE = timedelta(minutes=5)
"""After the first failure; twice as long after each one more, up to a day."""

MOST_DOUBLED = 8

AT_ONCE = 20
"""Conversations of one run of the worker's job."""

CHARACTERS = 24_000
"""What one extraction reads of a conversation, about 6,000 tokens; the rest is read by the next one."""


@dataclass(frozen=True)
class ConversationEvents:
    """What was read out of a conversation: ids of new and of changed events, and how many turns were read."""

    created: Sequence[UUID] = ()
    updated: Sequence[UUID] = ()
    turns: int = 0
    refused: int = 0


class EventReader:
    """Reads the conversations of one assistant, each tenant's under its plan in force.

    ``assistant`` None: of every assistant that answers under the plan. A draft reads only what was said under drafts
    of that plan.
    """

    def __init__(self, services: Services, assistant: str | None = None) -> None:
        self._services = services
        self._reach = Reach(services.plan.name, assistant, draft=services.revision is None)

    async def read_due(self, now: datetime, *, tenant: str | None = None, spared: Sequence[str] = ()) -> int:
        """Read the conversations that are due at ``now``; returns how many were. ``tenant`` None: of every tenant.

        A conversation whose model does not answer waits for another time; the others go on.
        """
        waiting = await waiting_tenants(self._services.database, self._reach)
        chosen = [one for one in waiting if tenant in (None, one) and one not in spared]
        return sum([await self._read_tenant(one, now) for one in chosen])

    async def read(self, tenant: str, conversation: str, reason: Reason, now: datetime) -> ConversationEvents:
        """Read all of a conversation that was not read yet.

        Raises InputError when the plan has no key events, or the conversation does not exist or is out of reach,
        BusyError while somebody else reads it, and ModelError when the model does not answer: nothing is lost then.
        """
        services = await self._services.under(tenant)
        if not are_active(services.plan.key_events):
            raise InputError(sentences("events_inactive"))
        whose = await whose_conversation(services.database, tenant, conversation, self._reach)
        if whose is None:
            raise InputError(sentences("conversation_unknown", conversation=conversation[:100]))
        if self._reach.assistant not in (None, whose.assistant):
            raise InputError(sentences("conversation_of_another", assistant=whose.assistant))
        if whose.out_of_reach:
            raise InputError(sentences("conversation_not_drafted", plan=services.plan.name))
        return await _Reader(services, tenant, whose.assistant, reason, now).read(conversation)

    async def _read_tenant(self, tenant: str, now: datetime) -> int:
        """What waits is read whatever type the agent is by now: it waits since it was of another (LA-26)."""
        try:
            services = await self._services.under(tenant)
        except SettingsError as error:
            # One tenant's plan that is refused keeps no other waiting.
            _log.warning("key events: a tenant's plan is not usable: %s", type(error).__name__)
            return 0
        if not are_active(services.plan.key_events):
            return 0
        settings = services.plan.key_events.extraction
        due = await due_conversations(
            services.database,
            tenant,
            self._reach,
            now,
            idle=timedelta(minutes=settings.idle_minutes),
            threshold=settings.message_threshold,
            limit=AT_ONCE,
        )
        read = 0
        for one in due:
            reader = _Reader(services, tenant, one.assistant, one.reason, now)
            try:
                read += bool((await reader.read(one.conversation)).turns)
            except StoreError:
                raise
            except Exception as error:
                # Only the kind of error: its text may quote what users wrote.
                _log.warning("key events: a conversation was not read: %s", type(error).__name__)
        return read


class _Reader:
    """Reads one conversation of a tenant, under the plan of ``services``."""

    def __init__(
        self, services: Services, tenant: str, assistant: str, reason: Reason, now: datetime
    ) -> None:
        self._services = services
        self._caller = Caller(tenant, assistant, None, "")
        self._reason = reason
        self._now = now
        settings = services.plan.key_events
        self._events = PostgresKeyEvents(
            services.database,
            tenant,
            assistant,
            shared=settings.shared_across_assistants,
            closed_days=settings.closed_days,
        )
        self._log = ExtractionLog(services.database, tenant, assistant, self._events)

    async def read(self, conversation: str) -> ConversationEvents:
        """Part by part until nothing waits."""
        total = ConversationEvents()
        while (claimed := await self._log.claim(conversation)) is not None:
            made = await self._read_part(claimed)
            if made is None:
                break
            total = ConversationEvents(
                [*total.created, *made.created],
                [*total.updated, *made.updated],
                total.turns + len(made.turns),
                total.refused + made.refused,
            )
        return total

    async def _read_part(self, claimed: Claimed) -> Extraction | None:
        part = _first_part(claimed.spoken)
        try:
            extracted = await self._extract(claimed, part)
        except Exception:
            pause = PAUSE * 2 ** min(claimed.failures, MOST_DOUBLED)
            await self._log.postpone(claimed, self._now + pause)
            raise
        reading = Reading(
            turns=list(dict.fromkeys(one.turn for one in part)),
            found=extracted.found,
            extractor=extracted.by,
            refused=extracted.refused,
            usage=usage_of(extracted.usage, self._services.plan.prices),
        )
        return await self._log.finish(claimed, reading, self._reason, self._now)

    async def _extract(self, claimed: Claimed, part: Sequence[Spoken]) -> Extracted:
        heard = Heard(
            spoken=await asyncio.to_thread(_readable, part),
            language=claimed.language,
            known=await self._events.open(claimed.owner, KNOWN),
            settings=self._services.plan.key_events,
        )
        return await self._extractor(claimed).extract(heard)

    def _extractor(self, claimed: Claimed) -> EventExtractor:
        services = self._services
        if isinstance(services.model, OfflineResponder) or claimed.failures >= TRIES:
            return RulesExtractor(services.embedder)
        caller = replace(self._caller, user=claimed.owner.user, conversation=claimed.conversation)
        return ModelExtractor(Call(caller, services, lambda chunk: None))


def _first_part(spoken: Sequence[Spoken]) -> list[Spoken]:
    """Whole turns from the oldest on, as much as one extraction reads, and always one."""
    part: list[Spoken] = []
    length = 0
    for one in spoken:
        length += min(len(one.text), READ)
        if part and length > CHARACTERS and one.turn != part[-1].turn:
            break
        part.append(one)
    return part


def _readable(spoken: Sequence[Spoken]) -> list[Spoken]:
    """The beginning of each message, without sensitive data (C-16)."""
    # Filtered before it is cut: of a number that is cut in two the filter knows neither half.
    return [replace(one, text=redact(one.text).text[:READ]) for one in spoken]
