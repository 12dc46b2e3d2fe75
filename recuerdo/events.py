"""Key events as operators see them: list, show, export, their types, and who looked (IM-16, IM-18, A-22)."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from recuerdo.nodes.extract_events import ConversationEvents, EventReader
from recuerdo.nodes.services import Services
from recuerdo.state.errors import InputError
from recuerdo.state.key_events import EventPage, KeyEvent, Origin, event_data, hint
from recuerdo.state.plan import KeyEventSettings, Plan
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.stores.postgres.key_events import OperatorEvents, OperatorFilter, PostgresKeyEvents
from recuerdo.stores.postgres.key_events.extraction import Extraction, ExtractionLog
from recuerdo.stores.postgres.key_events.operators import View

_sentences = load_sentences(__package__)

ExportFormat = Literal["json", "csv"]

_ALL = OperatorFilter()

# What a spreadsheet would run when it opens the file.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class TypeUse:
    """A type of event: whether it is in the dictionary, and how many events there are of it."""

    name: str
    description: str
    configured: bool
    events: int
    open: int


class Events:
    """The key events of one tenant, for its operators: of every assistant and user. ``actor`` says who looks.

    Every call raises ScopeError when the actor is missing, and StoreError when the database does not answer.
    """

    def __init__(self, services: Services, tenant: str, assistant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._assistant = assistant
        self._operators = OperatorEvents(services.database, tenant)

    async def list(
        self, which: OperatorFilter = _ALL, *, actor: str, limit: int = 50, offset: int = 0
    ) -> EventPage:
        """Events that match, last changed first; archived ones too."""
        return await self._operators.list(which, actor, self._services.clock(), limit=limit, offset=offset)

    async def show(self, event_id: UUID, *, actor: str) -> KeyEvent | None:
        """One event with its history; None: there is none of that id."""
        return await self._operators.get(event_id, actor, self._services.clock())

    async def export(self, which: OperatorFilter = _ALL, *, actor: str, form: ExportFormat = "json") -> str:
        """All events that match, as a JSON array or as CSV with a header."""
        events = await self._operators.export(which, actor, self._services.clock())
        data = [self.data(event) for event in events]
        return _as_csv(data) if form == "csv" else json.dumps(data, ensure_ascii=False, indent=2)

    async def types(self, *, actor: str) -> Sequence[TypeUse]:
        """The dictionary of the plan, and after it the types that only events of the assistant still have."""
        counted = await self._operators.types(actor, self._services.clock(), self._assistant_in_scope)
        of_type = {count.type: count for count in counted}
        known = {kind.name: kind.description for kind in self.settings.types}
        return [
            TypeUse(
                name=name,
                description=known.get(name, ""),
                configured=name in known,
                events=of_type[name].events if name in of_type else 0,
                open=of_type[name].open if name in of_type else 0,
            )
            for name in dict.fromkeys([*known, *of_type])
        ]

    async def without_type(self, name: str, *, actor: str, confirmed: bool = False) -> Plan:
        """The plan without a type of event: a draft, which acts once it is in force.

        Events of the type keep it, stay readable and are marked as of a removed type (IM-18).

        Raises InputError when there is no such type, or when it has events and ``confirmed`` is False.
        """
        used = {use.name: use for use in await self.types(actor=actor)}
        if name not in used or not used[name].configured:
            raise InputError(_sentences("event_type_unknown", type=name[:100]))
        if used[name].events and not confirmed:
            raise InputError(_sentences("event_type_in_use", type=name, events=used[name].events))
        kept = tuple(kind for kind in self.settings.types if kind.name != name)
        settings = self.settings.model_copy(update={"types": kept})
        return self._services.plan.model_copy(update={"key_events": settings})

    async def adopt(self, session: str, *, user: str, actor: str) -> Sequence[UUID]:
        """The user of an anonymous session is known now: its events become his, noted in their history (A-22)."""
        events = PostgresKeyEvents(
            self._services.database,
            self._tenant,
            self._assistant,
            shared=self.settings.shared_across_assistants,
        )
        return await events.adopt(session, user, Origin(self._services.clock(), actor, session))

    async def extract(self, conversation: str) -> ConversationEvents:
        """Read the events of one conversation now, whatever it waits for: by hand (IM-6).

        Only turns of an agent type that does not write them itself wait to be read (LA-26); what was read before is
        not read again. Raises InputError when the plan has no key events, BusyError while somebody else reads the
        conversation, and ModelError when the model does not answer: nothing has changed then.
        """
        reader = EventReader(self._services, self._assistant)
        return await reader.read(self._tenant, conversation, "manual", self._services.clock())

    async def extractions(self, conversation: str) -> Sequence[Extraction]:
        """What was read out of a conversation so far, oldest first: when, why, by whom, which events."""
        events = PostgresKeyEvents(self._services.database, self._tenant, self._assistant)
        return await ExtractionLog(self._services.database, self._tenant, self._assistant, events).of(
            conversation
        )

    async def views(self, *, limit: int = 100) -> Sequence[View]:
        """Who looked at which events, newest first."""
        return await self._operators.views(limit=limit)

    def data(self, event: KeyEvent) -> dict[str, Any]:
        """An event as JSON data; ``type_removed`` says that the plan no longer has its type."""
        return event_data(event, self.settings)

    @property
    def settings(self) -> KeyEventSettings:
        """The switch, the types and the rest, as the plan has them."""
        return self._services.plan.key_events

    @property
    def hint(self) -> Sentence | None:
        """What to do where the switch is on and nothing appears: no fault, a type is missing (LA-29)."""
        return hint(self.settings)

    @property
    def _assistant_in_scope(self) -> str | None:
        return None if self.settings.shared_across_assistants else self._assistant


def _as_csv(data: Sequence[dict[str, Any]]) -> str:
    """One line an event, lists as JSON; nothing in it is a formula."""
    names = list(data[0]) if data else ["id"]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\r\n")
    writer.writeheader()
    for event in data:
        writer.writerow({name: _cell(value) for name, value in event.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value
