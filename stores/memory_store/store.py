"""Long-term memory as LangGraph's ``BaseStore``, for LangMem's tools and for other people's graphs.

It does what LangGraph's ``PostgresStore`` does: a batch reads before it writes, and of several puts of one key
the last counts; without a query the last changed item comes first; a filter never matches a value that is not
there; ``created_at`` stays when an item is put again. It deviates in this:

- An item has one vector, made of its whole value or, with ``index=[paths]``, of what stands there. A score is
  the cosine and up to 0.7 more for words in common, at most 1; items are in the order of the uncapped sum.
- An item that has expired is not read, whether or not it was swept already.
- Filters compare numbers as numbers, and a dictionary without operators looks inside a value.
- What is sensitive is taken out of every value before it is kept (RF-33), and NUL is replaced. A key or a label
  that is sensitive itself, such as a card number, is refused.
- All operations of a batch are checked before any is done, and what a batch changes of one user's memories, and of
  the app's own items, is written in one transaction each.
- A value is JSON of at most 1 MB; namespace and key together have at most 1,500 bytes, a namespace 50 labels.
- ``("memories", assistant, user)`` holds the memories that the agent has of that user, and nothing else does:
  they are read by this whole namespace only, never by a shorter prefix, and are in no list of namespaces. They
  expire as memories do, take no ``ttl``, are always indexed, and a value needs ``content``. A value whose other
  fields change counts as a new memory in the place of the old one. What a supervisor published is neither changed
  nor deleted (OR-11).
- A label has no dots: :func:`memories_namespace` writes the names of assistant and user as labels, so that an
  e-mail address can be a user (``%`` as ``%25``, ``.`` as ``%2E``).
"""

import asyncio
import weakref
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar, cast

from langgraph.store.base import BaseStore, Op, Result, TTLConfig

from recuerdo.stores.memory_store.batch import run_batch
from recuerdo.stores.memory_store.events import KeyEvents
from recuerdo.stores.memory_store.home import Backend, OpenBackend, StoreHome, nothing
from recuerdo.stores.memory_store.protocol import UserMemories
from recuerdo.stores.memory_store.remote import Remote
from recuerdo.stores.postgres.key_events import CLOSED_DAYS

T = TypeVar("T")


class MemoryStore(BaseStore):
    """Items and memories of one tenant. See this module for what it does as ``PostgresStore`` and what not.

    It works on an event loop of its own, opened at the first use, so each of its methods can be called from any
    thread and any loop, the sync ones also where a loop runs. Besides what :class:`BaseStore` raises, the
    errors are ItemError, NamespaceError and FilterError, which are ValueErrors, ScopeError and StoreError.
    """

    supports_ttl = True
    ttl_config: TTLConfig | None = TTLConfig(refresh_on_read=True, omit_expired=True)

    def __init__(self, open_backend: OpenBackend) -> None:
        self._home = StoreHome(open_backend)
        weakref.finalize(self, self._home.close)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations, reads before writes; results in the order of ``ops``."""
        return self._home.run(lambda backend: run_batch(backend, list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """See :meth:`batch`."""
        return await self._home.arun(lambda backend: run_batch(backend, list(ops)))

    def memories(self, assistant: str) -> UserMemories:
        """The memories that ``assistant`` has of its users: for any loop, like the store."""
        return cast(UserMemories, Remote(self._run, lambda backend: backend.memories(assistant)))

    def events(self, assistant: str, *, shared: bool = False, closed_days: int = CLOSED_DAYS) -> KeyEvents:
        """The key events that ``assistant`` has of its users, or, ``shared``, those of every assistant (A-23)."""
        return cast(
            KeyEvents,
            Remote(
                self._run, lambda backend: backend.events(assistant, shared=shared, closed_days=closed_days)
            ),
        )

    async def astart(self) -> None:
        """Open what the store works on now, not at the first use. Raises StoreError."""
        await self._home.arun(nothing)

    def start(self) -> None:
        """See :meth:`astart`."""
        self._home.run(nothing)

    def close(self) -> None:
        """Let go of what the store works on; a second call does nothing."""
        self._home.close()

    async def aclose(self) -> None:
        """See :meth:`close`."""
        await asyncio.to_thread(self._home.close)

    async def _run(self, work: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """For the parts that are given out: who has one of them has the store, so it stays open."""
        return await self._home.arun(work)
