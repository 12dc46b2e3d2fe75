"""How well and how fast memories are found again, beside others with the same embedder.

``recuerdo bench recall --data PATH [--json]``: PATH is LoCoMo (``locomo10.json`` or a part of it). Each turn of
a conversation is one memory of one user, and a question has found its evidence when one of the turns (any) or
which share of them (frac) is among the first 10, 20, 50. :func:`measure_scale` needs no data.
"""

import asyncio
import json
import math
import os
import re
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import yaml
from langchain_core.embeddings import Embeddings

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import Sentence
from recuerdo.stores.chroma import VectorIndex, open_index
from recuerdo.stores.embeddings import BundledEmbedder
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.embedded import EmbeddedServer
from recuerdo.stores.postgres.memories import NewMemory, write_memories
from recuerdo.stores.recall.search import Recall
from recuerdo.stores.worker import index_vectors

TENANT, ASSISTANT = "bench", "assistant"
CUTS = (10, 20, 50)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
SIZES, USERS = (1_000, 10_000, 100_000), 1_000
PROBES = 300


@dataclass(frozen=True)
class Said:
    """One turn: ``key`` is its dia_id, ``session`` its session with its date ``at``."""

    key: str
    text: str
    session: str
    at: datetime


@dataclass(frozen=True)
class Question:
    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Talk:
    """One conversation: the memories of one user, and the questions about them."""

    user: str
    said: list[Said]
    questions: list[Question]


@dataclass(frozen=True)
class Bench:
    folder: Path
    database: Database
    index: VectorIndex
    embedder: BundledEmbedder


Search = Callable[[Talk, str], Awaitable[list[str]]]
"""Keys of what a question finds in a conversation, best first."""


def measure(data: Path | None) -> dict[str, Any]:
    """Shares from 0 to 100 of Recuerdo and of the peers, times per question in milliseconds."""
    return asyncio.run(_compare(read_locomo(data)))


def measure_scale() -> dict[str, Any]:
    """Recall with 1,000 to 100,000 memories of 1,000 users: times, exactness, memory and disk."""
    return {f"{size:_}": asyncio.run(_at_scale(size)) for size in SIZES}


async def _compare(talks: list[Talk]) -> dict[str, Any]:
    async with open_bench() as bench:
        keys = {talk.user: await remember(bench, talk) for talk in talks}
        own = await figures(talks, recuerdo_search(bench, keys))
        peers = {
            "chroma": await figures(talks, chroma_search(bench, keys)),
            "langgraph_store": await figures(talks, await _langgraph(bench, talks)),
            "bm25": await figures(talks, bm25_search(talks)),
        }
        if mem0 := await _mem0(bench, talks):
            peers["mem0"] = await figures(talks, mem0)
    return {**own, "peers": peers}


@asynccontextmanager
async def open_bench() -> AsyncIterator[Bench]:
    """A server, an index and the bundled embedder in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="recuerdo-bench-") as name:
        folder, embedder = Path(name), BundledEmbedder()
        server = EmbeddedServer(folder / "postgres")
        database = await Database.open(await asyncio.to_thread(server.start))
        index = await open_index(folder / "chroma", embedder)
        try:
            yield Bench(folder, database, index, embedder)
        finally:
            await index.close()
            await database.close()
            await asyncio.to_thread(server.stop)


# LoCoMo


def read_locomo(path: Path | None) -> list[Talk]:
    """The conversations of a LoCoMo file, or of the only one in a folder; InputError when it is none.

    Questions without evidence are left out.
    """
    if path is None:
        raise InputError(_sentence("data_missing"))
    try:
        file = next(path.glob("*.json")) if path.is_dir() else path
        return [_talk(sample) for sample in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, LookupError, TypeError, StopIteration):
        raise InputError(_sentence("data_unusable", path=path)) from None


def _sentence(key: str, **values: object) -> Sentence:
    table = yaml.safe_load((Path(__file__).parent / "recall_sentences.yaml").read_text(encoding="utf-8"))
    return Sentence(**table[key]).with_values(**values)


def _talk(sample: dict[str, Any]) -> Talk:
    conversation = sample["conversation"]
    sessions = sorted(
        (name for name in conversation if re.fullmatch(r"session_\d+", name)),
        key=lambda name: int(name.removeprefix("session_")),
    )
    said = [
        Said(turn["dia_id"], _spoken(turn), name, _moment(conversation[f"{name}_date_time"]))
        for name in sessions
        for turn in conversation[name]
    ]
    questions = [
        Question(row["question"], CATEGORIES[row["category"]], _evidence(row["evidence"]))
        for row in sample["qa"]
        if row["evidence"]
    ]
    return Talk(sample["sample_id"], said, questions)


def _spoken(turn: dict[str, Any]) -> str:
    caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _evidence(ids: Sequence[str]) -> frozenset[str]:
    """Some entries hold several ids, or an id with a colon too many."""
    return frozenset(re.sub(r"^D:", "D", part) for entry in ids for part in re.split(r"[;,\s]+", entry))


async def remember(bench: Bench, talk: Talk) -> dict[str, str]:
    """Write the turns as memories of the user; returns their keys by memory id."""
    keys: dict[str, str] = {}
    for session, turns in groupby(talk.said, key=lambda said: said.session):
        said = list(turns)
        memories = [
            NewMemory("turn", each.text, "en", 1.0, conversation=session, position=place)
            for place, each in enumerate(said)
        ]
        written = await _write(bench, talk.user, memories, said[0].at)
        keys |= {memory_id: each.key for memory_id, each in zip(written, said, strict=True)}
    return keys


async def _write(bench: Bench, user: str, memories: list[NewMemory], at: datetime) -> list[str]:
    async with bench.database.transaction() as connection:
        written = await write_memories(connection, TENANT, ASSISTANT, user, memories, at, None)
        # The conversations span years: nothing expires while they are asked about.
        await connection.execute(
            "update recuerdo.user_memory set expires_at = null where user_id = %s", [user]
        )
    await index_vectors(bench.database, bench.index, bench.embedder, written)
    return [str(each.id) for each in written]


async def figures(talks: list[Talk], search: Search, cuts: Sequence[int] = CUTS) -> dict[str, Any]:
    """How often evidence is among the first, in per cent, by the ``cuts``; by category at the first of them."""
    any_at, frac_at = defaultdict(list), defaultdict(list)
    by_category, spent = defaultdict(list), []
    await search(talks[0], talks[0].questions[0].text)
    for talk in talks:
        for question in talk.questions:
            started = time.perf_counter()
            found = await search(talk, question.text)
            spent.append((time.perf_counter() - started) * 1000)
            for cut in cuts:
                share = len(question.evidence.intersection(found[:cut])) / len(question.evidence)
                any_at[str(cut)].append(share > 0)
                frac_at[str(cut)].append(share)
            by_category[question.category].append(any_at[str(cuts[0])][-1])
    return {
        "questions": len(spent),
        "any_at": {cut: _percent(values) for cut, values in any_at.items()},
        "frac_at": {cut: _percent(values) for cut, values in frac_at.items()},
        f"any_at_{cuts[0]}_by_category": {name: _percent(hits) for name, hits in sorted(by_category.items())},
        "ms_p50": _percentile(spent, 50),
        "ms_p95": _percentile(spent, 95),
    }


# Who searches


def recuerdo_search(bench: Bench, keys: dict[str, dict[str, str]]) -> Search:
    recall = Recall(bench.database, bench.index, bench.embedder, TENANT)

    async def search(talk: Talk, question: str) -> list[str]:
        found = await recall.search(ASSISTANT, talk.user, question, talk.said[-1].at, CUTS[-1])
        return [keys[talk.user][str(each.memory.id)] for each in found]

    return search


def chroma_search(bench: Bench, keys: dict[str, dict[str, str]]) -> Search:
    async def search(talk: Talk, question: str) -> list[str]:
        vector = await bench.embedder.embed_query(question)
        hits = await bench.index.query(TENANT, ASSISTANT, talk.user, vector, CUTS[-1])
        return [keys[talk.user][hit.id] for hit in hits]

    return search


async def _langgraph(bench: Bench, talks: list[Talk]) -> Search:
    from langgraph.store.memory import InMemoryStore

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return await bench.embedder.embed(texts)

    store = InMemoryStore(index={"dims": bench.embedder.dimensions, "embed": embed})
    for talk in talks:
        for each in talk.said:
            await store.aput((talk.user,), each.key, {"text": each.text})

    async def search(talk: Talk, question: str) -> list[str]:
        return [item.key for item in await store.asearch((talk.user,), query=question, limit=CUTS[-1])]

    return search


async def _mem0(bench: Bench, talks: list[Talk]) -> Search | None:
    """mem0 with ``infer=False``, its vectors in Chroma; None where the package ``mem0ai`` is not installed."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(bench.folder / "mem0")}
    try:
        from mem0 import Memory  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "chroma", "config": {"path": str(bench.folder / "mem0-vectors")}},
            "embedder": {"provider": "langchain", "config": {"model": _AsEmbeddings()}},
            # Never called, but the package wants one.
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
        }
    )
    for talk in talks:
        for each in talk.said:
            await asyncio.to_thread(
                memory.add, each.text, user_id=talk.user, metadata={"key": each.key}, infer=False
            )

    async def search(talk: Talk, question: str) -> list[str]:
        found = await asyncio.to_thread(
            memory.search, question, filters={"user_id": talk.user}, top_k=CUTS[-1], threshold=0.0
        )
        return [hit["metadata"]["key"] for hit in found["results"]]

    return search


class _AsEmbeddings(Embeddings):
    """The bundled embedder as LangChain's, for who takes that."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return asyncio.run(BundledEmbedder().embed(texts))

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def bm25_search(talks: list[Talk]) -> Search:
    """BM25 as it is commonly set (k1 1.5, b .75), over words in lower case."""
    collections = {talk.user: _Bm25(talk.said) for talk in talks}

    async def search(talk: Talk, question: str) -> list[str]:
        return collections[talk.user].search(question)

    return search


class _Bm25:
    def __init__(self, said: list[Said]) -> None:
        self._keys = [each.key for each in said]
        self._counts = [Counter(_words(each.text)) for each in said]
        self._having = Counter(word for counts in self._counts for word in counts)
        lengths = np.array([counts.total() for counts in self._counts])
        self._norm = 1.5 * (0.25 + 0.75 * lengths / lengths.mean())

    def search(self, question: str) -> list[str]:
        scores = np.zeros(len(self._keys))
        for word in set(_words(question)) & self._having.keys():
            having = self._having[word]
            frequency = np.array([counts[word] for counts in self._counts])
            rarity = math.log(1 + (len(self._keys) - having + 0.5) / (having + 0.5))
            scores += rarity * frequency * 2.5 / (frequency + self._norm)
        return [self._keys[place] for place in np.argsort(-scores, kind="stable")[: CUTS[-1]]]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


# Scale

_WHO = ("Le interesa", "Prefiere", "Ya no quiere", "Preguntó por", "Compró", "He likes", "She asked about")
_WHAT = (
    "bonos a diez años",
    "acciones de energía",
    "fondos indexados",
    "short puts",
    "dividend stocks",
    "el RSI",
)
_WHY = ("por su padre", "para la universidad", "before retirement", "as a hedge", "por la inflación")
_ASKED = ("¿qué le interesa para la universidad?", "what did she ask about dividends?", "¿compró bonos?")


async def _at_scale(size: int) -> dict[str, Any]:
    each = size // USERS
    async with open_bench() as bench:
        vectors = await _vectors(bench.embedder)
        started = time.perf_counter()
        for user in range(USERS):
            await _write(bench, f"user-{user}", _made_up(user, each, vectors), _START)
        adding = time.perf_counter() - started
        figures = await _probe(bench, each)
        return {
            "memories": size,
            **figures,
            "add_ms": round(adding / size * 1000, 2),
            "python_resident_mb": round(psutil.Process().memory_info().rss / 1e6, 1),
            "postgres_disk_mb": _folder_mb(bench.folder / "postgres"),
            "chroma_disk_mb": _folder_mb(bench.folder / "chroma"),
        }


_START = datetime(2025, 12, 5, tzinfo=UTC)


async def _vectors(embedder: BundledEmbedder) -> dict[str, list[float]]:
    texts = [f"{who} {what} {why}" for who in _WHO for what in _WHAT for why in _WHY]
    return dict(zip(texts, await embedder.embed(texts), strict=True))


def _made_up(user: int, count: int, vectors: dict[str, list[float]]) -> list[NewMemory]:
    """Memories of one user, each with a word of its own; vectors near those of their sentences."""
    random = np.random.default_rng(user)
    texts = list(vectors)
    memories = []
    for place in range(count):
        text = texts[int(random.integers(len(texts)))]
        vector = np.array(vectors[text]) + random.normal(0, 0.01, len(vectors[text]))
        memories.append(
            NewMemory(
                "note",
                f"{text}, {_code(user, place)}",
                "es",
                1.0,
                embedding=(vector / np.linalg.norm(vector)).tolist(),
                embedder=BundledEmbedder.name,
                conversation=f"conversation-{place // 10}",
                position=place % 10,
            )
        )
    return memories


def _code(user: int, place: int) -> str:
    return f"clave{user}x{place}"


async def _probe(bench: Bench, each: int) -> dict[str, Any]:
    """Questions of users at random: half with the word of one memory, which must then come first."""
    random = np.random.default_rng(7)
    recall = Recall(bench.database, bench.index, bench.embedder, TENANT)
    spent, chroma, own, first = [], [], [], []
    for probe in range(PROBES):
        number, place = int(random.integers(USERS)), int(random.integers(each))
        user, code = f"user-{number}", _code(number, place)
        question = code if probe % 2 else _ASKED[probe % len(_ASKED)]
        started = time.perf_counter()
        found = await recall.search(ASSISTANT, user, question, _START, 10)
        spent.append((time.perf_counter() - started) * 1000)
        own.append(all(one.memory.user == user for one in found))
        if probe % 2:
            first.append(code in found[0].memory.text)
        vector = await bench.embedder.embed_query(question)
        started = time.perf_counter()
        await bench.index.query(TENANT, ASSISTANT, user, vector, 10)
        chroma.append((time.perf_counter() - started) * 1000)
    return {
        "ms_p50": _percentile(spent, 50),
        "ms_p95": _percentile(spent, 95),
        "own_share": _percent(own),
        "exact_word_first": _percent(first),
        "chroma_query_ms_p50": _percentile(chroma, 50),
    }


def _folder_mb(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1)


def _percent(values: Sequence[float]) -> float:
    return round(100 * statistics.fmean(values), 1)


def _percentile(values: list[float], percent: int) -> float:
    return round(statistics.quantiles(values, n=100, method="inclusive")[percent - 1], 2)
