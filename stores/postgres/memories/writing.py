"""Writes and changes memories in a transaction of the caller's, each change with its audit entry."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID, uuid4, uuid5

from psycopg.types.json import Jsonb

from recuerdo.state.errors import ScopeError
from recuerdo.state.limits import DEFAULT_LIMITS, MEMORY_MAX_CHARACTERS, MemoryLimits, expiry, status_for
from recuerdo.stores.postgres.audit import Action, Change, delete_with_audit, write_audit
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.memories.rows import (
    IN_FORCE,
    KEPT,
    OWN,
    MemoryBatch,
    MemoryChanges,
    NewMemory,
    WaitingVector,
    clean_metadata,
    decoded,
    encoded,
    sentences,
    words_digest,
)
from recuerdo.stores.postgres.revisions import Reason, revision_expiry
from recuerdo.stores.postgres.text import without_sensitive
from recuerdo.stores.recall.analysis import ANALYZER, analyse

_MEMORY_IDS = UUID("6f0c6c4e-6a1d-4a53-9a0b-6f3f2f0f7f51")

# A replay of the same turn that comes to the same text writes nothing. What was changed or forgotten after the
# turn is not undone by its replay.
_UPSERT: LiteralString = """
insert into recuerdo.user_memory as kept
    (id, tenant, assistant, user_id, kind, text, embedding, embedder, status, confidence, language, quote,
     message_id, turn_id, item, metadata, created_at, updated_at, confirmed_at, expires_at,
     vector_waiting_since, words, terms, asks, analyzer, conversation, position, changed_in)
select
     %(id)s, %(tenant)s, %(assistant)s, %(user)s, %(kind)s, %(text)s, %(embedding)s, %(embedder)s,
     %(status)s, %(confidence)s, %(language)s, %(quote)s, %(message_id)s, %(turn)s, %(item)s, %(metadata)s,
     %(at)s, %(at)s, %(confirmed_at)s, %(expires_at)s, %(at)s, %(words)s, %(terms)s, %(asks)s, %(analyzer)s,
     coalesce(%(conversation)s, turn.conversation), coalesce(%(position)s, turn.number), %(turn)s
from (select) as one left join recuerdo.turns turn on turn.tenant = %(tenant)s and turn.id = %(turn)s
where %(turn)s::uuid is null or not exists (
    select from recuerdo.memory_audit gone
    where gone.tenant = %(tenant)s and gone.table_name = 'user_memory' and gone.item_id = %(id)s::uuid::text
        and gone.action in ('forgotten', 'superseded'))
on conflict (id) do update set
    text = excluded.text, embedding = excluded.embedding, embedder = excluded.embedder,
    words = excluded.words, terms = excluded.terms, asks = excluded.asks, analyzer = excluded.analyzer,
    status = excluded.status, confidence = excluded.confidence, language = excluded.language,
    quote = excluded.quote, message_id = excluded.message_id, metadata = excluded.metadata,
    updated_at = excluded.updated_at, confirmed_at = excluded.confirmed_at,
    expires_at = excluded.expires_at, vector_waiting_since = excluded.vector_waiting_since
where kept.text is distinct from excluded.text and kept.changed_in is not distinct from excluded.changed_in
returning xmax = 0 as added
"""

_UPDATE: LiteralString = """
update recuerdo.user_memory set
    text = %(text)s, embedding = %(embedding)s, embedder = %(embedder)s, words = %(words)s, terms = %(terms)s,
    asks = %(asks)s, analyzer = %(analyzer)s, quote = null, message_id = null, updated_at = %(at)s,
    confirmed_at = case when status = 'confirmed' then %(at)s else confirmed_at end,
    expires_at = %(expires_at)s, vector_waiting_since = %(at)s, changed_in = %(turn)s
where id = %(id)s
"""

# A replay of the turn that confirmed or wrote it changes nothing.
_CONFIRM: LiteralString = f"""
update recuerdo.user_memory set status = 'confirmed', confidence = 1, confirmed_at = %(now)s,
    updated_at = %(now)s, expires_at = %(expires_at)s, changed_in = %(turn)s
where {IN_FORCE} and status <> 'published' and id = %(id)s
    and (%(turn)s::uuid is null or changed_in is distinct from %(turn)s)
"""

_SET_ACTIVE: LiteralString = f"""
update recuerdo.user_memory set active = %(active)s, changed_in = %(turn)s
where {OWN} and id = %(id)s and status not in ('published', 'withdrawn') and expires_at > %(now)s
    and active <> %(active)s
"""

_SAME_WORDS: LiteralString = f"""
select id, text, embedding, embedder, status, active, metadata from recuerdo.user_memory
where {KEPT} and kind = %(kind)s and words = %(words)s and id <> %(id)s
order by active desc, created_at, id limit 1
"""

_NOTE: LiteralString = """
update recuerdo.user_memory set metadata = metadata || %(noted)s, updated_at = %(at)s, changed_in = %(turn)s
where id = %(id)s
"""

_VECTOR_COLUMNS = ("id", "tenant", "assistant", "user", "text", "embedding", "embedder")


@dataclass(frozen=True)
class MemoryWriter:
    """Changes the memories of one user in the transaction of ``connection``.

    ``turn`` is the turn that says so, None outside of one: then what may not be changed raises ScopeError,
    within a turn it is left as it is.
    """

    connection: Connection
    tenant: str
    assistant: str
    user: str
    at: datetime
    turn: UUID | None = None
    limits: MemoryLimits = DEFAULT_LIMITS

    async def add(self, memory: NewMemory, item: int = 0) -> WaitingVector | None:
        """Write a memory, the ``item``-th of its kind in its turn. None: a replay that changes nothing."""
        row = await self._new_row(memory, item)
        if memory.once and (same := await self._same_words(row)):
            await self._say_again(same, row)
            await self._take_places(memory, same["id"])
            return self._waiting({**row, **same, "embedding": decoded(same["embedding"])})
        values = {**row, "embedding": encoded(row["embedding"]), "metadata": Jsonb(row["metadata"])}
        cursor = await self.connection.execute(_UPSERT, values)
        if (change := await cursor.fetchone()) is None:
            return None
        await self._audit(row["id"], "added" if change["added"] else "updated", memory.message_id)
        await self._take_places(memory, row["id"])
        return self._waiting(row)

    async def update(
        self, memory_id: UUID, text: str, embedding: Sequence[float] | None, embedder: str | None
    ) -> WaitingVector | None:
        """Give a memory another text; the one before goes to its history. None: none in force, or a replay."""
        old = await self._locked(memory_id)
        if old is None or (self.turn is not None and old["changed_in"] == self.turn):
            return None
        row = await self._text_row(text, old["language"], embedding, embedder)
        row |= {"expires_at": expiry(old["status"], self.at, self.limits), "at": self.at}
        row |= {"id": memory_id, "turn": self.turn}
        if row["text"] != old["text"]:
            await self._keep_revision(old, memory_id, "updated")
        await self.connection.execute(_UPDATE, {**row, "embedding": encoded(row["embedding"])})
        await self._audit(memory_id, "updated")
        return self._waiting(row)

    async def confirm(self, memory_id: UUID, message_id: str | None = None) -> bool:
        """The user says that it is so: 90 days from now (C-6, A-25). False: none in force, or published."""
        values = {"id": memory_id, "expires_at": expiry("confirmed", self.at), "turn": self.turn}
        cursor = await self.connection.execute(_CONFIRM, {**self._scope, **values})
        if cursor.rowcount:
            await self._audit(memory_id, "confirmed", message_id)
        return bool(cursor.rowcount)

    async def set_active(self, memory_id: UUID, active: bool) -> bool:
        """Switch a memory off or on again (IM-30). False: it is so already, not kept, or published."""
        cursor = await self.connection.execute(
            _SET_ACTIVE, {**self._scope, "id": memory_id, "active": active, "turn": self.turn}
        )
        if cursor.rowcount:
            await self._audit(memory_id, "activated" if active else "deactivated")
        return bool(cursor.rowcount)

    async def forget(self, memory_id: UUID, action: Action = "forgotten", *, published: bool = False) -> bool:
        """Delete a memory with its history. False: not the user's.

        One that a supervisor published stays (OR-11) unless ``published`` says that the user himself wants it gone.
        """
        if not published and await self._is_published(memory_id):
            return False
        where: LiteralString = f"{OWN} and id = %(id)s"
        values = {**self._scope, "id": memory_id}
        gone = await delete_with_audit(
            self.connection, "user_memory", where, values, action, self.user, self.at
        )
        return bool(gone)

    async def in_force(self, memory_id: UUID) -> bool:
        """Whether there is such a memory that its user may change. Raises ScopeError for a published one."""
        return await self._locked(memory_id) is not None

    @property
    def _scope(self) -> dict[str, Any]:
        return {"tenant": self.tenant, "assistant": self.assistant, "user": self.user, "now": self.at}

    async def _take_places(self, memory: NewMemory, memory_id: UUID) -> None:
        """The history of the memory in the place of others: theirs, then their texts."""
        for old_id in memory.supersedes:
            old = await self._locked(old_id) if old_id != memory_id else None
            if old is None:
                continue
            await self.connection.execute(
                "update recuerdo.memory_revisions set memory_id = %s where tenant = %s and memory_id = %s",
                (memory_id, self.tenant, old_id),
            )
            await self._keep_revision(old, memory_id, "superseded")
            await self.forget(old_id, "superseded")

    async def _locked(self, memory_id: UUID) -> dict[str, Any] | None:
        """A memory in force that is about to change."""
        cursor = await self.connection.execute(
            "select id, text, status, language, message_id, expires_at, changed_in from recuerdo.user_memory"
            f" where {IN_FORCE} and id = %(id)s for update",
            {**self._scope, "id": memory_id},
        )
        row = await cursor.fetchone()
        if row is not None and row["status"] == "published":
            self._refuse_published()
            return None
        return row

    async def _is_published(self, memory_id: UUID) -> bool:
        """Whether a supervisor alone may take it away; outside of a turn raises ScopeError then."""
        cursor = await self.connection.execute(
            f"select from recuerdo.user_memory where {OWN} and id = %(id)s and status = 'published' for update",
            {**self._scope, "id": memory_id},
        )
        if await cursor.fetchone() is None:
            return False
        self._refuse_published()
        return True

    def _refuse_published(self) -> None:
        if self.turn is None:
            raise ScopeError(sentences("memory_published"))

    async def _keep_revision(self, old: dict[str, Any], memory_id: UUID, reason: Reason) -> None:
        await self.connection.execute(
            "insert into recuerdo.memory_revisions"
            " (tenant, memory_id, was_id, assistant, user_id, text, reason, message_id, at, expires_at)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                self.tenant,
                memory_id,
                old["id"],
                self.assistant,
                self.user,
                old["text"],
                reason,
                old["message_id"],
                self.at,
                revision_expiry(old["expires_at"], self.at),
            ),
        )

    async def _say_again(self, same: dict[str, Any], row: dict[str, Any]) -> None:
        """The memory in the same words is on, confirmed, and has what is new in the metadata."""
        if not same["active"]:
            await self.set_active(same["id"], True)
        if row["status"] == "confirmed":
            await self.confirm(same["id"], row["message_id"])
        noted = {key: value for key, value in row["metadata"].items() if same["metadata"].get(key) != value}
        if noted:
            await self._note(same, noted)

    async def _note(self, same: dict[str, Any], noted: dict[str, Any]) -> None:
        if same["status"] == "published":
            self._refuse_published()
            return
        values = {"id": same["id"], "noted": Jsonb(noted), "at": self.at, "turn": self.turn}
        await self.connection.execute(_NOTE, values)
        await self._audit(same["id"], "updated")

    async def _same_words(self, row: dict[str, Any]) -> dict[str, Any] | None:
        # Else two at once would both find none.
        await self.connection.execute(
            "select pg_advisory_xact_lock(hashtextextended(%s, 0))",
            (f"{self.tenant}\x1f{self.assistant}\x1f{self.user}",),
        )
        cursor = await self.connection.execute(_SAME_WORDS, {**row, "now": self.at})
        return await cursor.fetchone()

    async def _new_row(self, memory: NewMemory, item: int) -> dict[str, Any]:
        """The columns of a new memory, redacted."""
        status = status_for(memory.confidence, self.limits)
        key = f"{self.tenant}\0{self.turn}\0{memory.kind}\0{item}"
        return {
            **await self._text_row(memory.text, memory.language, memory.embedding, memory.embedder),
            **self._scope,
            "id": uuid5(_MEMORY_IDS, key) if self.turn else uuid4(),
            "turn": self.turn,
            "item": item,
            "kind": memory.kind,
            "status": status,
            "confidence": memory.confidence,
            "language": memory.language,
            "quote": await without_sensitive(memory.quote),
            "message_id": memory.message_id,
            "metadata": await clean_metadata(memory.metadata),
            "at": self.at,
            "confirmed_at": self.at if status == "confirmed" else None,
            "expires_at": expiry(status, self.at, self.limits),
            "conversation": memory.conversation,
            "position": memory.position,
        }

    async def _text_row(
        self, text: str, language: str, embedding: Sequence[float] | None, embedder: str | None
    ) -> dict[str, Any]:
        """A text, redacted, and what is made of it; no embedding of one that held sensitive data is kept."""
        clean = await without_sensitive(text)
        kept = clean == text and embedding is not None
        analysis = await asyncio.to_thread(analyse, clean, language)
        return {
            "text": clean,
            "embedding": list(embedding) if kept and embedding is not None else None,
            "embedder": embedder if kept else None,
            "words": words_digest(clean),
            "terms": analysis.terms,
            "asks": analysis.asks,
            "analyzer": ANALYZER,
        }

    def _waiting(self, row: dict[str, Any]) -> WaitingVector:
        values = {**self._scope, **row}
        return WaitingVector(**{column: values[column] for column in _VECTOR_COLUMNS}, since=self.at)

    async def _audit(self, memory_id: UUID, action: Action, message_id: str | None = None) -> None:
        change = Change("user_memory", str(memory_id), action, self.turn, message_id)
        await write_audit(self.connection, self.tenant, self.user, self.at, [change])


async def write_memories(
    connection: Connection,
    tenant: str,
    assistant: str,
    user: str,
    memories: Sequence[NewMemory],
    at: datetime,
    turn: UUID | None,
    limits: MemoryLimits = DEFAULT_LIMITS,
) -> list[WaitingVector]:
    """Write the memories and their audit in the transaction of ``connection``.

    Within a turn a memory is keyed by its kind and its place among those of its kind, so a replay writes
    nothing twice. A turn is not lost for a text that is too long: it is cut. Returns what was written and so
    waits for the index.
    """
    writer = MemoryWriter(connection, tenant, assistant, user, at, turn, limits)
    written: list[WaitingVector] = []
    placed: defaultdict[str, int] = defaultdict(int)
    for memory in memories:
        waiting = await writer.add(_cut(memory), placed[memory.kind])
        placed[memory.kind] += 1
        if waiting is not None:
            written.append(waiting)
    return written


async def change_memories(writer: MemoryWriter, changes: MemoryChanges) -> list[WaitingVector]:
    """Change, confirm and forget what the user said so of; a replay of the turn changes nothing twice.

    Returns what has another text and so waits for the index.
    """
    updated = [await writer.update(key, text, None, None) for key, text in changes.updated.items()]
    for memory_id in changes.confirmed:
        await writer.confirm(memory_id, changes.message_id)
    for memory_id in changes.forgotten:
        await writer.forget(memory_id)
    return [waiting for waiting in updated if waiting is not None]


async def write_batch(writer: MemoryWriter, batch: MemoryBatch) -> list[WaitingVector]:
    """Make the changes of a batch in the transaction of the writer. Returns what waits for the index."""
    written = [await writer.add(memory) for memory in batch.added]
    for memory_id, new in batch.updated.items():
        written.append(await writer.update(memory_id, new.text, new.embedding, new.embedder))
    for memory_id in batch.forgotten:
        await writer.forget(memory_id)
    return [waiting for waiting in written if waiting is not None]


def _cut(memory: NewMemory) -> NewMemory:
    if len(memory.text) <= MEMORY_MAX_CHARACTERS:
        return memory
    shorter = memory.text[: MEMORY_MAX_CHARACTERS - 1] + "…"
    return replace(memory, text=shorter, embedding=None, embedder=None)
