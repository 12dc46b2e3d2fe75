"""Recall in Spanish: 20 users, their memories, and questions in other words, in English, or about near-duplicates.

``recuerdo bench recall_es [--json]``. The set is our own (``benchmarks/data``); nothing was fitted on it.
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from benchmarks.recall import (
    ASSISTANT,
    TENANT,
    Bench,
    Question,
    Said,
    Talk,
    bm25_search,
    chroma_search,
    figures,
    open_bench,
    recuerdo_search,
)
from recuerdo.stores.postgres.memories import NewMemory, write_memories
from recuerdo.stores.worker import index_vectors

_SET = Path(__file__).parent / "data" / "recall_es.yaml"
_CUTS = (1, 3, 10)


def measure(data: Path | None) -> dict[str, Any]:
    """Shares from 0 to 100 of Recuerdo and of the peers, times per question in milliseconds."""
    return asyncio.run(_compare(_talks(data or _SET)))


async def _compare(talks: list[Talk]) -> dict[str, Any]:
    async with open_bench() as bench:
        keys = {talk.user: await _remember(bench, talk) for talk in talks}
        own = await figures(talks, recuerdo_search(bench, keys), _CUTS)
        peers = {
            "chroma": await figures(talks, chroma_search(bench, keys), _CUTS),
            "bm25": await figures(talks, bm25_search(talks), _CUTS),
        }
    return {"memories": sum(len(talk.said) for talk in talks), "users": len(talks), **own, "peers": peers}


def _talks(path: Path) -> list[Talk]:
    return [_talk(user) for user in yaml.safe_load(path.read_text(encoding="utf-8"))["users"]]


def _talk(user: dict[str, Any]) -> Talk:
    said = [Said(each["id"], each["text"], each["kind"], _moment(each["date"])) for each in user["memories"]]
    questions = [
        Question(each["text"], each["case"], frozenset(each["answers"])) for each in user["questions"]
    ]
    return Talk(user["name"], said, questions)


def _moment(date: str) -> datetime:
    return datetime.fromisoformat(date).replace(tzinfo=UTC)


async def _remember(bench: Bench, talk: Talk) -> dict[str, str]:
    """Each as a memory of its own: they are facts, not turns of one conversation. Keys by memory id."""
    keys = {}
    for each in talk.said:
        memory = NewMemory(each.session, each.text, "es", 1.0)
        async with bench.database.transaction() as connection:
            written = await write_memories(connection, TENANT, ASSISTANT, talk.user, [memory], each.at, None)
        await index_vectors(bench.database, bench.index, bench.embedder, written)
        keys[str(written[0].id)] = each.key
    return keys
