"""Parts of a store for callers on any event loop: each call runs on the store's own."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from recuerdo.stores.memory_store.home import Backend

Run = Callable[[Callable[[Backend], Coroutine[Any, Any, Any]]], Awaitable[Any]]
"""Runs a coroutine where the store's parts belong."""


class Remote:
    """Has the async methods of the part that ``part_of`` names; they can be awaited on any loop."""

    def __init__(self, run: Run, part_of: Callable[[Backend], Any]) -> None:
        self._run = run
        self._part_of = part_of

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            async def there(backend: Backend) -> Any:
                return await getattr(self._part_of(backend), name)(*args, **kwargs)

            return await self._run(there)

        return call
