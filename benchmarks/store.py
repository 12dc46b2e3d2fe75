"""How fast the store is as LangGraph's store: a batch of puts and of searches, beside LangGraph's own.

``recuerdo bench store [--json]``. The same made-up texts and the same embedder for all, in one run: 1,000 puts in
one batch, 100 searches in one batch and 100 one by one, and how often the item that has the words asked for comes
first. Needs no data.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore as LangGraphStore

import recuerdo
from recuerdo.stores.embeddings import BundledEmbedder

PUTS, SEARCHES = 1_000, 100
NAMESPACE = ("bench", "docs")

_WHO = ("Carlos", "Lucía", "Priya", "Noah", "Inés", "Tomás", "Ada", "Hugo", "Vera", "Iván")
_DOES = (
    "prefers",
    "prefiere",
    "asked about",
    "preguntó por",
    "sold",
    "vendió",
    "wants",
    "quiere",
    "avoids",
    "evita",
)
_WHAT = (
    "bonos a diez años",
    "energy shares",
    "fondos indexados",
    "short puts",
    "dividend stocks",
    "el índice RSI",
    "gold",
    "letras del tesoro",
    "green bonds",
    "acciones de bancos",
)


def measure(data: Path | None) -> dict[str, Any]:
    """Seconds of the batches, milliseconds of a search alone, and hits from 0 to 100."""
    return asyncio.run(_compare())


async def _compare() -> dict[str, Any]:
    embedder = BundledEmbedder()
    # The model is loaded once for all: nobody's time.
    await embedder.embed(["warm"])
    return {
        "puts": PUTS,
        "searches": SEARCHES,
        "recuerdo_postgres": await _postgres(),
        "recuerdo_in_memory": await _figures(recuerdo.InMemoryStore()),
        "langgraph_in_memory": await _figures(_langgraph(embedder)),
    }


async def _postgres() -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recuerdo-bench-")))
        settings = recuerdo.Settings(_env_file=None, data=folder, database_url=None)  # type: ignore[call-arg]
        return await _figures(await stack.enter_async_context(recuerdo.open_store(settings)))


def _langgraph(embedder: BundledEmbedder) -> LangGraphStore:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return await embedder.embed(texts)

    return LangGraphStore(index={"dims": embedder.dimensions, "embed": embed, "fields": ["text"]})


async def _figures(store: BaseStore) -> dict[str, Any]:
    texts = [f"{who} {does} {what}" for who in _WHO for does in _DOES for what in _WHAT]
    puts = [PutOp(NAMESPACE, str(number), {"text": text}) for number, text in enumerate(texts[:PUTS])]
    # One question for every tenth text, in the words of that text.
    asked = {number: texts[number] for number in range(0, PUTS, PUTS // SEARCHES)}
    searches = [SearchOp(NAMESPACE, query=text, limit=10) for text in asked.values()]
    put_seconds, _ = await _timed(store, puts)
    search_seconds, found = await _timed(store, searches)
    alone = [(await _timed(store, [search]))[0] * 1000 for search in searches]
    first = [answer[0].key == str(number) for number, answer in zip(asked, found, strict=True)]
    return {
        "put_batch_s": round(put_seconds, 2),
        "search_batch_s": round(search_seconds, 2),
        "search_ms_p50": round(statistics.median(alone), 1),
        "own_text_first": round(100 * statistics.fmean(first), 1),
    }


async def _timed(store: BaseStore, ops: Sequence[PutOp | SearchOp]) -> tuple[float, list[Any]]:
    started = time.perf_counter()
    results = await store.abatch(ops)
    return time.perf_counter() - started, results
