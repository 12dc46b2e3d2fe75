"""What is remembered of a user, as an app sees it: remember, recall, correct, forget, and why (IM-43)."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from recuerdo.nodes.receive.language import detect_language
from recuerdo.nodes.services import Services
from recuerdo.nodes.update_memory.preference_values import preference_value
from recuerdo.state.errors import InputError, StoreError
from recuerdo.state.limits import CRITICAL_USES
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.memory_store.postgres import PostgresMemories
from recuerdo.stores.portable import Imported, export_tenant, export_user, import_tenant
from recuerdo.stores.postgres.approvals import Approvals
from recuerdo.stores.postgres.arguments import checked_name
from recuerdo.stores.postgres.audit import AuditEntry, read_audit
from recuerdo.stores.postgres.governance_audit import GovernanceAudit
from recuerdo.stores.postgres.memories import Memories, NewMemory, StoredMemory
from recuerdo.stores.postgres.memories.rows import checked_text
from recuerdo.stores.postgres.memories.rows import sentences as memory_sentences
from recuerdo.stores.postgres.preferences import Preference, PreferenceChange, Preferences
from recuerdo.stores.postgres.publishing import Candidate, Publication, Publishing
from recuerdo.stores.postgres.retention import Forgotten, forget_user
from recuerdo.stores.postgres.revisions import Revision
from recuerdo.stores.postgres.roles import SUPERVISING, Roles
from recuerdo.stores.postgres.symbols import Interest, SymbolInterest
from recuerdo.stores.postgres.text import storable
from recuerdo.stores.postgres.turns import StoredMessage, TurnLog
from recuerdo.stores.recall.search import Recalled
from recuerdo.stores.reindex import reindex
from recuerdo.stores.worker import index_waiting

sentences = load_sentences(__package__, "memory_sentences.yaml")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Explanation:
    """Why something is remembered.

    ``memory`` has the user's words (``quote``) and the turn; ``message`` is where he said them, None when it is
    gone or nobody said it in a conversation. ``history``: earlier texts, oldest first.
    """

    memory: StoredMemory
    message: StoredMessage | None
    history: Sequence[Revision]
    publications: Sequence[Publication]
    audit: Sequence[AuditEntry]


class Memory:
    """The long-term memory of one tenant and assistant.

    Every method raises ScopeError for an empty user, InputError for an id that is none, a page that cannot be or a
    text that is none, and StoreError when the database does not answer.
    """

    def __init__(self, services: Services, tenant: str, assistant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._assistant = assistant
        self._memories = Memories(services.database, tenant)
        self._kept = PostgresMemories(services.database, services.index, services.embedder, tenant, assistant)
        self._preferences = Preferences(services.database, tenant)
        self._symbols = SymbolInterest(services.database, tenant)
        self._publishing = Publishing(services.database, tenant, assistant, services.keys)

    @property
    def roles(self) -> Roles:
        """Who may publish and withdraw."""
        return Roles(self._services.database, self._tenant, self._services.keys)

    async def remember(
        self,
        text: str,
        *,
        user: str,
        kind: str = "note",
        language: str | None = None,
        confidence: float | None = 1.0,
        metadata: dict[str, Any] | None = None,
    ) -> StoredMemory:
        """Keep a text of at most 4,000 characters; what the user has in the same words is confirmed instead.

        That takes what is new in ``metadata``, and is switched on again if it was off. ``confidence`` 0 to 1 decides
        how long: below 0.6, or None, at most 7 days, else 90 (C-6). ``language`` "es" or "en", None: by the text.
        Raises InputError for a text, kind, language, confidence or metadata that cannot be kept, ScopeError when new
        metadata would change a published memory.
        """
        checked_text(text)
        if language is None:
            language = await asyncio.to_thread(detect_language, text)
        memory = NewMemory(
            kind=kind,
            text=text,
            language=language,
            confidence=confidence,
            metadata=_plain({} if metadata is None else metadata),
            once=True,
        )
        return await self._kept.add(user, memory, self._services.clock())

    async def recall(self, query: str, *, user: str, limit: int = 10) -> Sequence[Recalled]:
        """The user's memories that answer ``query`` best, best first."""
        return await self._kept.search(user, query, self._services.clock(), limit)

    async def list(
        self, *, user: str, limit: int = 100, offset: int = 0, inactive: bool = False
    ) -> Sequence[StoredMemory]:
        """Memories that are in force, last changed first; ``inactive``: those that are switched off instead."""
        page = self._memories.inactive if inactive else self._memories.all
        return await page(self._assistant, user, self._services.clock(), limit=limit, offset=offset)

    async def update(self, memory_id: UUID, text: str, *, user: str) -> StoredMemory | None:
        """Correct a memory: the user says it, so it is confirmed. None: the user has none of that id.

        Raises InputError for a text that cannot be, ScopeError for a published memory.
        """
        memory_id, now = _id(memory_id), self._services.clock()
        if await self._kept.update(user, memory_id, text, now) is None:
            return None
        await self._kept.confirm(user, memory_id, now)
        return next(iter(await self._kept.get(user, [memory_id], now)), None)

    async def confirm(self, memory_id: UUID, *, user: str) -> bool:
        """The user says that it is so: kept for 90 days from now. False: the user has none of that id."""
        return await self._kept.confirm(user, _id(memory_id), self._services.clock())

    async def set_active(self, memory_id: UUID, active: bool, *, user: str) -> bool:
        """Switch a memory off, so that no turn sees it, or on again (IM-30). False: nothing to switch."""
        now = self._services.clock()
        return await self._memories.set_active(_id(memory_id), self._assistant, user, active, now)

    async def forget(self, memory_id: UUID, *, user: str) -> bool:
        """Forget one memory, row, history and vector; False when the user has none of that id.

        The user's own right: a published one goes too.
        """
        return await self._kept.forget(user, _id(memory_id), self._services.clock(), published=True)

    async def forget_all(self, *, user: str) -> Forgotten:
        """Forget the user: memories, preferences, symbols, conversations, events; the audit keeps ids, and the ledger
        calls whose outcome nobody knows, without the user.

        Raises BusyError while a turn of the user's is running; then nothing is gone.
        """
        services = self._services
        approvals = Approvals(services.database, self._tenant, services.keys)
        now = services.clock()
        gone = await forget_user(services.database, self._tenant, user, now, approvals=approvals)
        await self._delete_vectors(user, gone.assistants)
        return gone

    async def why(self, memory_id: UUID, *, user: str) -> Explanation | None:
        """Why it is remembered: the words, the message, the turn, earlier texts, and who changed it.

        None: nothing of the user's in force has that id.
        """
        memory_id, now = _id(memory_id), self._services.clock()
        found = await self._memories.get([memory_id], self._assistant, user, now)
        if not found:
            return None
        audit = await read_audit(self._services.database, self._tenant, "user_memory", str(memory_id))
        return Explanation(
            found[0],
            await self._message_of(found[0]),
            await self._kept.history(user, memory_id, now),
            await self._publishing.publications(memory_id),
            audit,
        )

    async def publish(self, memory_id: UUID, *, actor: str, reason: str) -> None:
        """Make a memory permanent, for the user it is of (OR-11). Audited.

        Raises ScopeError when the actor is neither supervisor nor owner, InputError without a reason or when
        no memory in force has that id.
        """
        await self._publishing.publish(_id(memory_id), actor=actor, reason=reason, at=self._services.clock())

    async def withdraw(self, memory_id: UUID, *, actor: str, reason: str) -> None:
        """Take a published memory out of use: the next turn lacks it (IM-51). Audited; raises as publish."""
        await self._publishing.withdraw(_id(memory_id), actor=actor, reason=reason, at=self._services.clock())

    async def candidates(self, *, actor: str, uses: int = CRITICAL_USES) -> Sequence[Candidate]:
        """Memories of all users that at least ``uses`` turns used: to choose from (A-26). For supervisors."""
        return await self._publishing.candidates(actor=actor, now=self._services.clock(), uses=uses)

    async def audit(self, memory_id: UUID, *, actor: str) -> Sequence[AuditEntry]:
        """Who did what to a memory, also to one that is gone, oldest first. For supervisors."""
        await self.roles.require(actor, SUPERVISING)
        return await read_audit(self._services.database, self._tenant, "user_memory", str(_id(memory_id)))

    async def preferences(self, *, user: str) -> dict[str, Preference]:
        """Preferences that are in force, by key."""
        return await self._preferences.all(user, self._services.clock())

    async def correct_preference(self, key: str, value: Any, *, user: str) -> Preference:
        """Set one preference, as the user says it; ``value`` is plain JSON data, or a text that is read as such.

        Raises InputError for a key that cannot be kept, or a value that the key does not take.
        """
        checked_name("key", key)
        value = preference_value(key, _plain(value))
        now = self._services.clock()
        quote = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        language = await asyncio.to_thread(detect_language, quote)
        await self._preferences.set(user, PreferenceChange(key, value, quote, None, language), now)
        return (await self._preferences.all(user, now))[key]

    async def forget_preference(self, key: str, *, user: str) -> bool:
        """Forget one preference; False when there is none of that key."""
        if not isinstance(key, str) or storable(key) != key:
            return False
        return await self._preferences.delete(user, key, self._services.clock())

    async def export(self, *, user: str) -> dict[str, Any]:
        """What is kept of the user and is in force, conversations included, as plain data by table (IM-43).

        All but the audit, roles and the copy of the platform's own data; see ``stores.portable.export_user``.
        """
        now = self._services.clock()
        return dict(await export_user(self._services.database, self._tenant, user, now))

    async def export_db(self, path: Path, *, replace: bool = False) -> dict[str, int]:
        """Write the tenant's whole long-term memory into one SQLite file (OR-6). Returns rows by table.

        Raises InputError when the file is there and is not to be replaced, or cannot be written.
        """
        now = self._services.clock()
        return await export_tenant(self._services.database, self._tenant, path, now, replace=replace)

    async def import_db(self, path: Path, *, actor: str) -> Imported:
        """Bring such a file back: all of it, or nothing (OR-6). Its vectors follow with the worker.

        Raises InputError for a file that is no such export, or that was damaged.
        """
        services = self._services
        audit = GovernanceAudit(services.database, self._tenant, services.keys)
        return await import_tenant(
            services.database, self._tenant, path, actor, services.clock(), audit=audit
        )

    async def reindex(self) -> int:
        """Write the assistant's vector index anew from PostgreSQL (C-10). Returns how many vectors it has now.

        Raises StoreError when the index does not answer.
        """
        services = self._services
        await reindex(services.database, services.index, self._tenant, self._assistant, services.clock())
        await index_waiting(services.database, services.index, services.embedder)
        return await services.index.count(self._tenant, self._assistant)

    async def symbols(self, *, user: str) -> Sequence[Interest]:
        """Symbols of interest, most mentioned first."""
        return await self._symbols.of(user, self._services.clock())

    async def _message_of(self, memory: StoredMemory) -> StoredMessage | None:
        if memory.turn is None or memory.message_id is None:
            return None
        log = TurnLog(self._services.database, self._tenant)
        return await log.message(memory.turn, memory.message_id, memory.user)

    async def _delete_vectors(self, user: str, assistants: Sequence[str]) -> None:
        """At once when it can, else the worker does it."""
        index = self._services.index
        if index.unavailable:
            return
        try:
            for assistant in assistants:
                await index.delete_user(self._tenant, assistant, user)
        except StoreError as error:
            _log.warning("a user's vectors wait for the worker: %s", type(error).__name__)


def _id(memory_id: UUID | str) -> UUID:
    """A memory's id, also when it comes as text; raises InputError for what is none."""
    try:
        return memory_id if isinstance(memory_id, UUID) else UUID(memory_id)
    except (AttributeError, TypeError, ValueError):
        raise InputError(memory_sentences("memory_id_invalid", text=str(memory_id)[:60])) from None


def _plain(value: Any) -> Any:
    """``value`` as JSON keeps it; raises InputError when it cannot."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise InputError(sentences("not_plain_data")) from None
