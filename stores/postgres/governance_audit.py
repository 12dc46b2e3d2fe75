"""The audit of what governs an agent: a chain of keyed hashes for each tenant (governance, part 7).

Each entry is hashed together with the hash before it, with a key that is not in the database; where the chain ends
is sealed apart from it. So a row that was changed, removed or moved shows, and a tail that was cut off too. Whoever
could put back an old copy of the whole database is found by an anchor: a number and hash noted elsewhere.
"""

import asyncio
import hmac
import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, Self

from psycopg import AsyncCursor, DataError
from psycopg.errors import UniqueViolation
from psycopg.rows import class_row, tuple_row

from recuerdo.state.errors import InputError, SettingsError, StoreError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.governance_held import find_unaudited
from recuerdo.stores.postgres.held.evidence import evidence_marks
from recuerdo.stores.postgres.held.proposals import proposal_marks, read_json
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.sensitive import redact

_sentences = load_sentences(__package__, "governance_sentences.yaml")

AuditFault = Literal[
    "altered", "missing", "end_missing", "end_wrong", "anchor_missing", "other_key", "unaudited"
]
"""An entry is not what was written; one is missing before it; entries after the last are missing, or where the chain
ends was changed; the noted entry is not there; the chain was made with another key; what is in force is not what the
entries say."""

_COLUMNS = "number, at, actor, action, subject, before, after, details, hash"
# An instant that was put in by hand may be none that can be read: it is null then.
_READABLE = _COLUMNS.replace(
    " at,", " case when at >= '0001-01-03' and at < '9999-12-30' then at end as at,", 1
)
_BATCH = 2000
_BEGINNING = bytes(32)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_KEY_ID_DIGITS = 16


@dataclass(frozen=True)
class AuditAct:
    """One act: who did what to what, and when (aware).

    ``before`` and ``after`` are hashes or names of states, ``details`` ids, names and numbers. ``reason`` is what a
    person gave as one: sensitive data is taken out of it (C-16).
    """

    at: datetime
    actor: str
    action: str
    subject: str
    before: str | None = None
    after: str | None = None
    details: Mapping[str, str | int | bool | Sequence[str]] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True)
class GovernanceEntry:
    """An act as it stands in the chain. ``details`` is the JSON text that was hashed, ``hash`` 32 bytes."""

    number: int
    at: datetime
    actor: str
    action: str
    subject: str
    before: str | None
    after: str | None
    details: str
    hash: bytes


@dataclass(frozen=True)
class Anchor:
    """An entry that was noted elsewhere: the chain must still hold it."""

    number: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.number}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``NUMBER:HASH``. Raises InputError."""
        found = re.fullmatch(r"([1-9][0-9]{0,17}):([0-9a-f]{64})", text.strip())
        if not found:
            raise InputError(_sentences("audit_anchor_invalid", anchor=text[:100]))
        return cls(int(found[1]), bytes.fromhex(found[2]))


@dataclass(frozen=True)
class Verification:
    """What a verification found: how many entries, the last one, and the first fault with its number.

    ``subject`` is the plan, pack, person, request, call, proposal, trial or memory that is not as its entry says.
    """

    entries: int
    last: Anchor | None = None
    fault: AuditFault | None = None
    at: int | None = None
    subject: str | None = None


class GovernanceAudit:
    """The chain of one tenant. Raises ScopeError without a tenant."""

    def __init__(self, database: Database, tenant: str, keys: KeyFolder) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant
        self._keys = keys

    async def append(self, connection: Connection, act: AuditAct) -> int:
        """Write ``act`` in the transaction of ``connection`` and return its number.

        From here to the end of the transaction the chain waits for it, so it comes last in it.

        Raises SettingsError when the chain was begun with another key, StoreError when its end is missing, was changed,
        or is not its last entry.
        """
        require_scope(actor=act.actor)
        require_aware(act.at)
        marks = await self._marks(connection, act)
        begins = not await self._has_begun(connection)
        key, details = await asyncio.to_thread(self._prepared, act, marks, begins)
        number, previous = await self._end(connection, key)
        row = (number + 1, act.at, act.actor, act.action, act.subject, act.before, act.after, details)
        new = entry_hash(key, self._tenant, previous, row)
        try:
            await connection.execute(
                f"insert into recuerdo.governance_audit (tenant, {_COLUMNS})"
                " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (self._tenant, *row, new),
            )
        except UniqueViolation:
            raise StoreError(_sentences("audit_past_end", tenant=self._tenant)) from None
        await connection.execute(
            "update recuerdo.governance_audit_heads set number = %s, hash = %s, seal = %s where tenant = %s",
            (number + 1, new, end_seal(key, self._tenant, number + 1, new), self._tenant),
        )
        return number + 1

    async def holds(
        self, connection: Connection, action: str, subject: str, details: Mapping[str, str]
    ) -> bool:
        """Whether the chain has an act on ``subject`` with these details among its own.

        Each entry is checked with the hash before it: one that was put in by hand does not count.
        """
        cursor: AsyncCursor[tuple[Any, ...]] = connection.cursor(row_factory=tuple_row)
        await cursor.execute(
            "select (select hash from recuerdo.governance_audit p where p.tenant = g.tenant"
            f" and p.number = g.number - 1), {_READABLE} from recuerdo.governance_audit g"
            " where tenant = %s and action = %s and subject = %s order by number",
            (self._tenant, action, subject),
        )
        rows = await cursor.fetchall()
        if not rows:
            return False
        key = await asyncio.to_thread(self._key)
        return any(
            details.items() <= json.loads(row[-1]).items()
            for previous, *row, found in rows
            if _is_entry(key, self._tenant, previous or _BEGINNING, row, found)
        )

    async def entries(
        self, *, limit: int = 100, before: int | None = None, subject: str | None = None
    ) -> Sequence[GovernanceEntry]:
        """The newest entries first: those below number ``before``, of ``subject`` alone where one is given.

        Raises StoreError for one that was put in by hand and cannot be read.
        """
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(GovernanceEntry))
            await cursor.execute(
                f"select {_COLUMNS} from recuerdo.governance_audit where tenant = %(tenant)s"
                " and (%(before)s::bigint is null or number < %(before)s)"
                " and (%(subject)s::text is null or subject = %(subject)s)"
                " order by number desc limit %(limit)s",
                {"tenant": self._tenant, "before": before, "subject": subject, "limit": limit},
            )
            try:
                return await cursor.fetchall()
            except DataError:
                raise StoreError(_sentences("audit_unreadable", tenant=self._tenant)) from None

    async def verify(self, anchor: Anchor | None = None) -> Verification:
        """Check the whole chain, its end, that it holds ``anchor``, and that what is in force stands in it.

        Memory stays the same however long the chain is.
        """
        async with self._database.tenant(self._tenant, snapshot=True) as connection:
            # Before the first entry there is no key, and none is made to look.
            key = await asyncio.to_thread(self._key) if await self._has_begun(connection) else b""
            head = await self._head(connection)
            if head and head["key_id"] != _key_id(key):
                return Verification(0, None, "other_key")
            chain = _Chain(key, self._tenant, anchor)
            async for rows in self._batches(connection):
                if not await asyncio.to_thread(chain.takes, rows):
                    return chain.result()
            unaudited = await find_unaudited(connection, self._tenant)
        chain.ends(head, governed=bool(head or unaudited))
        found = chain.result()
        return found if found.fault or not unaudited else replace(found, fault="unaudited", subject=unaudited)

    def _key(self, begins: bool = False) -> bytes:
        return chain_key(self._keys, self._tenant, begins=begins)

    async def _has_begun(self, connection: Connection) -> bool:
        cursor = await connection.execute(
            "select exists (select from recuerdo.governance_audit_heads where tenant = %(tenant)s)"
            " or exists (select from recuerdo.governance_audit where tenant = %(tenant)s) as begun",
            {"tenant": self._tenant},
        )
        row = await cursor.fetchone()
        return bool(row and row["begun"])

    async def _marks(self, connection: Connection, act: AuditAct) -> dict[str, str]:
        """Hashes of what stands beside the act, in rows that could be changed since."""
        if act.action.startswith("proposal."):
            return await proposal_marks(connection, self._tenant, act.action, act.subject)
        return await evidence_marks(connection, self._tenant, act.action, act.subject)

    def _prepared(self, act: AuditAct, marks: Mapping[str, str], begins: bool) -> tuple[bytes, str]:
        """The tenant's key, and the details as they are kept. Blocks."""
        reason = {"reason": redact(act.reason).text} if act.reason else {}
        details = {**act.details, **reason, **marks}
        return self._key(begins), json.dumps(details, ensure_ascii=False, sort_keys=True)

    async def _end(self, connection: Connection, key: bytes) -> tuple[int, bytes]:
        """Number and hash of the last entry; nobody else appends until the transaction ends."""
        await connection.execute(
            "insert into recuerdo.governance_audit_heads (tenant, number, hash, seal, key_id)"
            " select %(tenant)s, 0, %(hash)s, %(seal)s, %(key_id)s where not exists"
            " (select from recuerdo.governance_audit where tenant = %(tenant)s)"
            " on conflict (tenant) do nothing",
            {
                "tenant": self._tenant,
                "hash": _BEGINNING,
                "seal": end_seal(key, self._tenant, 0, _BEGINNING),
                "key_id": _key_id(key),
            },
        )
        head = await self._head(connection, " for update")
        if head is None:
            raise StoreError(_sentences("audit_head_missing", tenant=self._tenant))
        if head["key_id"] != _key_id(key):
            raise SettingsError(_sentences("audit_other_key", tenant=self._tenant))
        if not _is_sealed(key, self._tenant, head):
            raise StoreError(_sentences("audit_end_changed", tenant=self._tenant))
        return head["number"], head["hash"]

    async def _head(
        self, connection: Connection, lock: Literal["", " for update"] = ""
    ) -> dict[str, Any] | None:
        cursor = await connection.execute(
            "select number, hash, seal, key_id from recuerdo.governance_audit_heads where tenant = %s" + lock,
            (self._tenant,),
        )
        return await cursor.fetchone()

    async def _batches(self, connection: Connection) -> AsyncIterator[list[tuple[Any, ...]]]:
        last = 0
        cursor: AsyncCursor[tuple[Any, ...]] = connection.cursor(row_factory=tuple_row)
        while True:
            await cursor.execute(
                f"select {_READABLE} from recuerdo.governance_audit where tenant = %s and number > %s"
                " order by number limit %s",
                (self._tenant, last, _BATCH),
            )
            rows = await cursor.fetchall()
            if not rows:
                return
            yield rows
            last = rows[-1][0]


class _Chain:
    """Reads a chain from its beginning, up to the first fault."""

    def __init__(self, key: bytes, tenant: str, anchor: Anchor | None) -> None:
        self._key = key
        self._tenant = tenant
        self._anchor = anchor
        self._number = 0
        self._hash = _BEGINNING
        self._anchored = anchor is None
        self._fault: tuple[AuditFault, int] | None = None

    def takes(self, rows: Iterable[tuple[Any, ...]]) -> bool:
        """Go on over these rows; False at a fault. Blocks."""
        for *row, found in rows:
            wanted = self._number + 1
            if row[0] != wanted:
                return self._failed("missing", wanted)
            if not _is_entry(self._key, self._tenant, self._hash, row, found):
                return self._failed("altered", wanted)
            self._number, self._hash = wanted, found
            if self._anchor and self._anchor.number == wanted:
                self._anchored = self._anchor.hash == found
        return True

    def ends(self, head: Mapping[str, Any] | None, governed: bool) -> None:
        """Check that the chain ends where it was sealed, and held the anchor."""
        if fault := self._fault_of_end(head, governed):
            self._failed(*fault)

    def _fault_of_end(self, head: Mapping[str, Any] | None, governed: bool) -> tuple[AuditFault, int] | None:
        if head is None and (governed or self._number):
            return "end_missing", self._number + 1
        if head is not None and not _is_sealed(self._key, self._tenant, head):
            return "end_wrong", head["number"]
        if head is not None and (head["number"], head["hash"]) != (self._number, self._hash):
            return "end_missing", self._number + 1
        if self._anchor and not self._anchored:
            return "anchor_missing", self._anchor.number
        return None

    def result(self) -> Verification:
        """What was found so far."""
        last = Anchor(self._number, self._hash) if self._number else None
        return Verification(self._number, last, *(self._fault or (None, None)))

    def _failed(self, fault: AuditFault, number: int) -> bool:
        self._fault = (fault, number)
        return False


async def read_change(connection: Connection, tenant: str, proposal: str) -> dict[str, Any] | None:
    """What the proposal of that id would change, as it stands; None for one that is not there, or that nobody made."""
    cursor = await connection.execute(
        "select change::text as change from recuerdo.proposals where tenant = %s and id::text = %s",
        (tenant, proposal),
    )
    row = await cursor.fetchone()
    return read_json(row["change"]) if row else None


def chain_key(keys: KeyFolder, tenant: str, *, begins: bool = False) -> bytes:
    """The key of a tenant's chain: one tenant's entries are none of another's. Blocks.

    Only for a chain that ``begins`` the folder may be without its key, which is then made.
    """
    return hmac.digest(keys.audit_key(make=begins), tenant.encode(), "sha256")


def entry_hash(key: bytes, tenant: str, previous: bytes, row: Sequence[Any]) -> bytes:
    """The hash of an entry after the one whose hash is ``previous``; ``row`` are its columns without the hash."""
    number, at, *texts = row
    # JSON of a list tells every field from its neighbour; it is the same on every machine.
    text = json.dumps([tenant, number, (at - _EPOCH) // _MICROSECOND, *texts])
    return hmac.digest(key, previous + text.encode(), "sha256")


def end_seal(key: bytes, tenant: str, number: int, last: bytes) -> bytes:
    """What shows that the chain ends with this entry."""
    return hmac.digest(key, b"end" + json.dumps([tenant, number]).encode() + last, "sha256")


def _is_entry(key: bytes, tenant: str, previous: bytes, row: Sequence[Any], found: bytes) -> bool:
    """Whether an entry that was read is one that was written; one without a readable instant was not."""
    return row[1] is not None and hmac.compare_digest(found, entry_hash(key, tenant, previous, row))


def _is_sealed(key: bytes, tenant: str, head: Mapping[str, Any]) -> bool:
    return hmac.compare_digest(head["seal"], end_seal(key, tenant, head["number"], head["hash"]))


def _key_id(key: bytes) -> str:
    return sha256(b"id" + key).hexdigest()[:_KEY_ID_DIGITS]
