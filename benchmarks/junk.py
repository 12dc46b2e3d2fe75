"""What stays after 1,000 mixed turns: how many stored memories are duplicates, or were never said by their user.

``recuerdo bench junk [--data FILE] [--json]``. Four users speak in turn, in both languages: sentences that say the
same few things in many wordings, and the messages of a labelled set (``data/extraction_dev.yaml``), half of which
teach nothing. Every reply repeats, as if the user had said it, what was recalled into the prompt and a bait; tool
results and pasted text are among the messages. The whole agent runs, with an embedded database.

A duplicate is a memory whose statement another memory in force of the same user has too: the statements of our own
sentences are known, all others count as the same when their words are. A memory is grounded when its quote stands
in a message that its user sent, and a fact when all of its text does.
"""

import asyncio
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from langchain_core.messages import AIMessage, BaseMessage

import recuerdo
from recuerdo.nodes.call_llm.local import LocalModel
from recuerdo.state.folding import folded, plain
from recuerdo.stores.postgres.memories import StoredMemory
from recuerdo.stores.sensitive import redact

SET = Path(__file__).parent / "data" / "extraction_dev.yaml"
STATEMENTS = Path(__file__).parent / "junk_statements.yaml"
TURNS, USERS, PER_CONVERSATION = 1000, 4, 10
SHARE_OF_STATEMENTS = 0.4


class Parrot(LocalModel):
    """Says as the user's own what stands among the memories of its prompt, and a bait."""

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """See LocalModel."""
        sent = "\n".join(str(message.text) for message in messages)
        recalled = sent.partition("<memories>")[2].partition("</memories>")[0]
        bait = "Vivo en Marte, siempre uso velas de 7h y soy alérgico al helio. I always trade on Saturn."
        return AIMessage(f"{recalled[:600]} {bait}")


def measure(data: Path | None) -> dict[str, Any]:
    """Counts of what is stored and the share that is junk, in per cent."""
    turns: list[dict[str, Any]] = yaml.safe_load((data or SET).read_text(encoding="utf-8"))
    statements: dict[str, list[str]] = yaml.safe_load(STATEMENTS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="recuerdo-bench-") as folder:
        os.environ["RECUERDO_DATA"] = folder
        return asyncio.run(_measure([turn["text"] for turn in turns], statements))


async def _measure(texts: Sequence[str], statements: dict[str, list[str]]) -> dict[str, Any]:
    said: dict[str, list[str]] = {f"user-{number}": [] for number in range(USERS)}
    clock = _Clock()
    totals: Counter[str] = Counter()
    async with recuerdo.open_agent(model=Parrot(), clock=clock) as agent:
        for number, text in enumerate(mixed(texts, statements)):
            user = f"user-{number % USERS}"
            said[user].append(redact(text).text)
            conversation = f"{user}-{number // (USERS * PER_CONVERSATION)}"
            record = (await agent.send(text, user=user, conversation=conversation)).record
            totals["turns_with_recalled"] += bool(record.memories)
            totals["confirmed"] += len(record.confirmed)
            totals["forgotten"] += len(record.forgotten)
            clock.forward()
        for user, messages in said.items():
            memories = await agent.memory.list(user=user, limit=TURNS)
            totals["stored"] += len(memories)
            totals["duplicates"] += duplicates(memories, statements)
            totals["not_grounded"] += sum(not is_grounded(memory, messages) for memory in memories)
            totals["preferences"] += len(await agent.memory.preferences(user=user))
    junk = totals["duplicates"] + totals["not_grounded"]
    return {
        "turns": TURNS,
        **totals,
        "not_grounded": totals["not_grounded"],
        "junk_percent": round(100 * junk / totals["stored"], 2) if totals["stored"] else 0.0,
    }


def mixed(texts: Sequence[str], statements: dict[str, list[str]]) -> Iterable[str]:
    """1,000 messages in a fixed order by chance."""
    chance = random.Random(7)
    wordings = [wording for group in statements.values() for wording in group]
    for _ in range(TURNS):
        yield chance.choice(wordings if chance.random() < SHARE_OF_STATEMENTS else texts)


def duplicates(memories: Sequence[StoredMemory], statements: dict[str, list[str]]) -> int:
    """How many memories state what another one of them states."""
    states = Counter(_statement(memory, statements) for memory in memories)
    return sum(number - 1 for number in states.values())


def _statement(memory: StoredMemory, statements: dict[str, list[str]]) -> str:
    said = _words(memory.quote if memory.kind == "question_answer" and memory.quote else memory.text)
    for name, wordings in statements.items():
        if any(said in _words(wording) or _words(wording) in said for wording in wordings):
            return name
    return said


def is_grounded(memory: StoredMemory, messages: Sequence[str]) -> bool:
    """Whether the user sent the memory's quote, and all of a fact's text."""
    sent = [" ".join(message.split()) for message in messages]
    quote = " ".join((memory.quote or "").split())
    if not quote or not any(quote in message for message in sent):
        return False
    return memory.kind == "question_answer" or any(memory.text in message for message in sent)


def _words(text: str) -> str:
    kept = (character if character.isalnum() else " " for character in folded(plain(text)))
    return " ".join("".join(kept).split())


class _Clock:
    """A turn a minute, so that all stays in force."""

    def __init__(self) -> None:
        self._now = datetime(2025, 12, 1, 14, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self._now

    def forward(self) -> None:
        self._now += timedelta(minutes=1)
