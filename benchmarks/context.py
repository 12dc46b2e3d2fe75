"""Which questions find the turns that answer them, word for word, in a request of the plan's size.

``recuerdo bench context --data PATH [--json]``: PATH is LoCoMo (``locomo10.json`` or a part of it). Each turn of
a conversation is a message of one thread and a memory of one user. At its end every question is asked with
6,000 tokens for everything: role, instructions, history, summary, memories and the question itself.

The peers get the same head, the same counter and the same tokens: what the memories leave is history, cut once
for a conversation. They are measured alone and with a plain vector search by our embedder, whose memories
carry no dates, so that more of them fit. Where a peer needs a model for its summary, our extractive summary
is its model. LangChain and langmem are no dependencies: a peer that is not installed is named in ``left_out``.
"""

import asyncio
import importlib
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.messages.utils import trim_messages
from langchain_core.runnables import Runnable, RunnableLambda

from benchmarks.recall import ASSISTANT, TENANT, Bench, Question, Talk, open_bench, read_locomo, remember
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.history import Past, history_blocks, present_blocks, redacted
from recuerdo.nodes.build_context.instructions import instruction_blocks
from recuerdo.nodes.build_context.memories import memory_blocks, recalled_at_most
from recuerdo.nodes.build_context.phrasing import as_data, fenced
from recuerdo.nodes.build_context.role import role_blocks
from recuerdo.nodes.build_prompt.layouts import REPLY_PRIMING, lay_out, overhead
from recuerdo.state.blocks import current, message_tokens
from recuerdo.state.fit import Budget, fit
from recuerdo.state.plan import Plan
from recuerdo.state.rounds import split_rounds, window_cut
from recuerdo.state.summary import extend_summary
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.memories import StoredMemory
from recuerdo.stores.recall.search import Recall
from recuerdo.stores.tokens import TokenCounter

RECALL_BUDGETS = (600, 2_000, 4_000)
LANGUAGE = "en"
SUMMARY_FRAME = 32
"""Tokens that a peer's own words around its summary may take."""

Messages = list[AnyMessage]
Keep = Callable[[Messages, int], Messages]
"""What a peer keeps of a thread within so many tokens."""


def measure(data: Path | None) -> dict[str, Any]:
    """Shares of the questions from 0 to 100 and tokens of the request, by the tokens for memories."""
    return asyncio.run(_compare(read_locomo(data)))


async def _compare(talks: list[Talk]) -> dict[str, Any]:
    setup = Setup(load_plan("trading"), TokenCounter())
    peers, left_out = _peers(setup)
    tallies: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    async with open_bench() as bench:
        for talk in talks:
            keys = await remember(bench, talk)
            asked = Asked(talk, setup, peers)
            for question in talk.questions:
                found = await _find(bench, talk, keys, question)
                for system, request in asked.requests(question, found):
                    tallies[system].add(question, talk, request, setup)
    return {
        "questions": sum(len(talk.questions) for talk in talks),
        "target_tokens": setup.target,
        "recuerdo": _figures(tallies, "recuerdo"),
        "peers": {name: _figures(tallies, name) for name in peers},
        "left_out": left_out,
    }


@dataclass(frozen=True)
class Setup:
    """What is the same for everybody: the plan with its limits, and how tokens are counted."""

    plan: Plan
    counter: TokenCounter

    @property
    def target(self) -> int:
        return self.plan.limits.compress_above

    def tokens(self, messages: Sequence[Any]) -> int:
        return sum(message_tokens(message, self.counter.count) for message in messages)

    def summary(self, previous: str, messages: Messages) -> str:
        longest = self.plan.memory.summary.max_tokens
        return extend_summary(previous, redacted(messages), LANGUAGE, longest, self.counter.count)


@dataclass(frozen=True)
class Found:
    """What a question finds: ``recalled`` by our recall, ``nearest`` the texts of the nearest vectors."""

    recalled: list[StoredMemory]
    nearest: list[str]


async def _find(bench: Bench, talk: Talk, keys: Mapping[str, str], question: Question) -> Found:
    most = recalled_at_most(RECALL_BUDGETS[-1])
    recall = Recall(bench.database, bench.index, bench.embedder, TENANT)
    recalled = await recall.search(ASSISTANT, talk.user, question.text, talk.said[-1].at, most)
    vector = await bench.embedder.embed_query(question.text)
    hits = await bench.index.query(TENANT, ASSISTANT, talk.user, vector, most)
    texts = {each.key: each.text for each in talk.said}
    return Found([each.memory for each in recalled], [texts[keys[hit.id]] for hit in hits])


class Asked:
    """One conversation at its end, and the requests that a question makes."""

    def __init__(self, talk: Talk, setup: Setup, peers: Mapping[str, Keep]) -> None:
        plan, count = setup.plan, setup.counter.count
        self._setup, self._now, self._peers = setup, talk.said[-1].at, peers
        self._thread = _thread(talk)
        role = role_blocks(plan, count)
        self._stable = [*role, *history_blocks(_played(self._thread, setup), plan, count)]
        self._head = SystemMessage("\n".join(current(block)["text"] for block in role))
        longest = max((HumanMessage(each.text) for each in talk.questions), key=lambda m: setup.tokens([m]))
        room = setup.target - setup.tokens([self._head, longest]) - REPLY_PRIMING
        self._histories = {
            (name, budget): keep(self._thread, room - budget)
            for name, keep in peers.items()
            for budget in (0, *RECALL_BUDGETS)
        }

    def requests(self, question: Question, found: Found) -> list[tuple[tuple[str, str], Messages]]:
        """The request of every system, by its name and what it may spend on memories."""
        requests = []
        for budget in RECALL_BUDGETS:
            memories = _filling(found.nearest, budget, self._setup)
            requests.append((("recuerdo", f"recall_{budget}"), self._own(question, found, budget)))
            requests += [
                ((name, f"search_{budget}"), self._of_peer(question, name, budget, memories))
                for name in self._peers
            ]
        return requests + [((name, "alone"), self._of_peer(question, name, 0, [])) for name in self._peers]

    def _own(self, question: Question, found: Found, budget: int) -> Messages:
        """As the nodes of a turn make it."""
        plan, count = self._setup.plan, self._setup.counter.count
        memories = found.recalled[: recalled_at_most(budget)]
        data = Gathered(self._now, LANGUAGE, "recall", 1.0, memories=memories)
        message = HumanMessage(question.text, id="question")
        blocks = [
            *self._stable,
            *memory_blocks(data.memories, data.phrasing, budget, count),
            *instruction_blocks(data, plan, count),
            *present_blocks([message], LANGUAGE, count),
        ]
        fitted = fit(blocks, overhead(plan, [], count), Budget(self._setup.target, plan.limits.max_input))
        return lay_out(fitted.blocks, [*self._thread, message], plan)

    def _of_peer(self, question: Question, name: str, budget: int, memories: Messages) -> Messages:
        return [self._head, *self._histories[name, budget], *memories, HumanMessage(question.text)]


def _thread(talk: Talk) -> Messages:
    """The turns as messages: who speaks first is the user, the other one the assistant."""
    user = _speaker(talk.said[0].text)
    return [
        (HumanMessage if _speaker(each.text) == user else AIMessage)(each.text, id=each.key)
        for each in talk.said
    ]


def _speaker(text: str) -> str:
    return text.partition(":")[0]


def _played(thread: Messages, setup: Setup) -> Past:
    """The window and the running summary at the end of the thread, moved after each round as a turn does."""
    window: Messages = []
    summary = ""
    for messages in split_rounds(thread):
        window += messages
        cut = window_cut(window, setup.plan.memory)
        if cut:
            summary = setup.summary(summary, window[:cut])
            window = window[cut:]
    return Past(window, summary, LANGUAGE)


def _filling(texts: list[str], budget: int, setup: Setup) -> Messages:
    """The best of ``texts`` that fit, as one message."""
    lines: list[str] = []
    left = budget - setup.tokens([SystemMessage(fenced("memories", [""]))])
    for text in texts[: recalled_at_most(budget)]:
        cost = setup.counter.count(f"- {as_data(text)}\n")
        if cost <= left:
            lines.append(as_data(text))
            left -= cost
    return [SystemMessage(fenced("memories", lines))] if lines else []


# Peers


def _peers(setup: Setup) -> tuple[dict[str, Keep], list[str]]:
    """Every peer that is installed, and what is not."""
    peers: dict[str, Keep] = {"last_messages": _last_messages(setup), "trim_messages": _trimmed(setup)}
    left_out = []
    for name, make in {"SummarizationMiddleware": _langchain, "summarize_messages": _langmem}.items():
        try:
            peers[name] = make(setup)
        except ImportError as error:
            left_out.append(f"{name}: {error}")
    return peers, left_out


def _last_messages(setup: Setup) -> Keep:
    def keep(thread: Messages, room: int) -> Messages:
        start = len(thread)
        while start and (cost := setup.tokens(thread[start - 1 : start])) <= room:
            start, room = start - 1, room - cost
        return thread[start:]

    return keep


def _trimmed(setup: Setup) -> Keep:
    def keep(thread: Messages, room: int) -> Messages:
        kept = trim_messages(
            thread, max_tokens=room, token_counter=setup.tokens, strategy="last", start_on="human"
        )
        return cast("Messages", kept)

    return keep


def _langchain(setup: Setup) -> Keep:
    """LangChain's middleware, set to keep as much as fits beside its summary."""
    middleware = importlib.import_module("langchain.agents.middleware").SummarizationMiddleware

    def keep(thread: Messages, room: int) -> Messages:
        summarise = middleware(
            FakeListChatModel(responses=[""]),  # asked for, but the summarizer stands in for it
            summarizer=lambda messages: setup.summary("", messages),
            trigger=("tokens", room),
            keep=("tokens", room - setup.plan.memory.summary.max_tokens - SUMMARY_FRAME),
            token_counter=setup.tokens,
            trim_tokens_to_summarize=None,
        )
        update = summarise.before_model({"messages": list(thread)}, None)
        messages = update["messages"] if update else thread
        return [message for message in messages if not isinstance(message, RemoveMessage)]

    return keep


def _langmem(setup: Setup) -> Keep:
    """langmem's summary of a thread, which is asked for at most what fits."""
    summarize_messages = importlib.import_module("langmem.short_term").summarize_messages
    # The last message is the request for a summary.
    model: Runnable[Messages, AIMessage] = RunnableLambda(
        lambda messages: AIMessage(setup.summary("", messages[:-1]))
    )

    def keep(thread: Messages, room: int) -> Messages:
        result = summarize_messages(
            list(thread),
            running_summary=None,
            model=model,
            max_tokens=room,
            max_summary_tokens=setup.plan.memory.summary.max_tokens + SUMMARY_FRAME,
            token_counter=setup.tokens,
        )
        return [*result.messages]

    return keep


# Figures


@dataclass(frozen=True)
class Answer:
    category: str
    any_held: bool
    all_held: bool
    tokens: int


class Tally:
    """The questions of one system."""

    def __init__(self) -> None:
        self._answers: list[Answer] = []

    def add(self, question: Question, talk: Talk, request: Messages, setup: Setup) -> None:
        lines = _lines(request)
        evidence = [_one_line(each.text) for each in talk.said if each.key in question.evidence]
        held = sum(any(line.endswith(text) for line in lines) for text in evidence)
        tokens = setup.tokens(request) + REPLY_PRIMING
        self._answers.append(Answer(question.category, held > 0, held >= len(question.evidence), tokens))

    def figures(self) -> dict[str, Any]:
        categories = sorted({answer.category for answer in self._answers})
        tokens = [answer.tokens for answer in self._answers]
        return {
            "any": _percent([answer.any_held for answer in self._answers]),
            "all": _percent([answer.all_held for answer in self._answers]),
            "any_by_category": {name: _percent([a.any_held for a in self._of(name)]) for name in categories},
            "all_by_category": {name: _percent([a.all_held for a in self._of(name)]) for name in categories},
            "tokens_mean": round(statistics.fmean(tokens)),
            "tokens_max": max(tokens),
        }

    def _of(self, category: str) -> list[Answer]:
        return [answer for answer in self._answers if answer.category == category]


def _lines(request: Messages) -> list[str]:
    """A request line by line, where a message of the thread is one line."""
    lines: list[str] = []
    for message in request:
        text = str(message.text)
        lines += text.splitlines() if isinstance(message, SystemMessage) else [_one_line(text)]
    return lines


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _figures(tallies: Mapping[tuple[str, str], Tally], system: str) -> dict[str, Any]:
    return {spent: tally.figures() for (name, spent), tally in tallies.items() if name == system}


def _percent(values: Sequence[bool]) -> float:
    return round(100 * statistics.fmean(values), 1)
