"""The extractor that asks a model, and checks by code what it answers (issue 4, point 2).

It works after the reply was streamed, out of the user's stream (known fault 23), and can only add: a model that is
slow, fails or answers with something else leaves what the rules read.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.constants import TAG_NOSTREAM

from recuerdo.nodes.call import Call
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.nodes.call_llm.usage import call_usage
from recuerdo.nodes.turn_log import holding_lease
from recuerdo.nodes.update_memory.extract.answer import SHAPE, read_answer
from recuerdo.nodes.update_memory.extract.checks import checked
from recuerdo.nodes.update_memory.extract.clauses import normalised
from recuerdo.nodes.update_memory.extract.protocol import Extracted, Extractor, Item, Said
from recuerdo.nodes.update_memory.extract.rules import RulesExtractor
from recuerdo.state.blocks import message_tokens
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import TurnInfo
from recuerdo.state.usage import CallUsage

logger = logging.getLogger(__name__)
prompts = load_sentences(__package__, "prompts.yaml")

SECONDS = 15.0
"""How long the model may take; the turn's row stays open that long."""

MAX_OUTPUT = 600
"""Output tokens of an answer."""

Facts = Callable[[], Awaitable[Sequence[str]]]

BEFORE = 2
"""Earlier messages of the user that are shown, for what "it" and "that" mean."""


def extractor_for(call: Call, turn: TurnInfo, facts: Facts) -> Extractor:
    """The extractor that the plan asks for (``memory.learning.by``); rules where there is no model.

    ``facts`` gives the texts of what is remembered already, nearest to the message: only a model is shown them.
    """
    by = call.services.plan.memory.learning.by
    if by == "rules" or isinstance(call.services.model, OfflineResponder):
        return RulesExtractor()
    return ModelExtractor(call, turn, facts, always=by == "model")


class ModelExtractor:
    """Asks the model about what the rules made nothing of; ``always``: about every message with a statement."""

    def __init__(self, call: Call, turn: TurnInfo, facts: Facts, *, always: bool) -> None:
        self._call = call
        self._turn = turn
        self._facts = facts
        self._always = always

    async def extract(self, said: Said) -> Extracted:
        """What the rules read, and what the model adds to it."""
        by_rules = await RulesExtractor().extract(said)
        found = bool(by_rules.learn or by_rules.forget)
        if not by_rules.unread and not (self._always and found):
            return by_rules
        usage: list[CallUsage] = []
        try:
            said = replace(said, facts=await self._facts())
            async with holding_lease(self._call, self._turn), asyncio.timeout(SECONDS):
                text = await self._ask(said, usage)
            answer = read_answer(text)
            if answer is None:
                return replace(by_rules, usage=usage)
            by_model = await asyncio.to_thread(checked, answer, said)
        except Exception as error:
            # Its text may quote the key or the conversation.
            logger.warning("the model read nothing to learn: %s", type(error).__name__)
            return replace(by_rules, usage=usage)
        return replace(_joined(by_rules, by_model), usage=usage)

    async def _ask(self, said: Said, usage: list[CallUsage]) -> str:
        services = self._call.services
        request = _request(said)
        model = services.model.bind(max_tokens=min(MAX_OUTPUT, services.plan.limits.max_output))
        reply = await model.ainvoke(request, {"tags": [TAG_NOSTREAM], "run_name": "learning"})
        count = services.counter.count
        estimated = sum(message_tokens(message, count) for message in request)
        usage.append(call_usage(reply, estimated, self._call))
        return str(reply.text)


def _request(said: Said) -> list[AnyMessage]:
    shape = json.dumps(SHAPE, ensure_ascii=False)
    instructions = prompts("instructions", shape=shape).in_language(said.language)
    facts = [f"{number}. {text}" for number, text in enumerate(said.facts, start=1)]
    preferences = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in said.preferences.items()
    ]
    parts = {
        "known": [*facts, *preferences],
        "before": said.before[-BEFORE:],
        "message": [normalised(said.text)],
    }
    data = "\n".join(f"<{name}>\n" + "\n".join(lines) + f"\n</{name}>" for name, lines in parts.items())
    return [SystemMessage(instructions), HumanMessage(data)]


def _joined(by_rules: Extracted, by_model: Extracted) -> Extracted:
    """What the rules read holds; the model adds what it read elsewhere in the message."""
    return replace(
        by_model,
        learn=[*by_rules.learn, *_others(by_model.learn, by_rules.learn)],
        forget=[*by_rules.forget, *_others(by_model.forget, by_rules.forget)],
        unread=by_rules.unread,
    )


def _others(items: Sequence[Item], read: Sequence[Item]) -> list[Item]:
    return [item for item in items if not any(_share_words(item, one) for one in read)]


def _share_words(item: Item, other: Item) -> bool:
    same_key = item.type == other.type and item.key == other.key and item.type != "fact"
    return same_key or item.quote in other.quote or other.quote in item.quote
