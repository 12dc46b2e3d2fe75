"""The offline responder: answers by quoting the prompt, when no model is configured."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import groupby
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGenerationChunk

from recuerdo.nodes.call_llm.local import LocalModel
from recuerdo.nodes.call_llm.prompt_facts import (
    HISTORY,
    REPLIES,
    SECTIONS,
    Fact,
    PromptFacts,
    read_prompt,
)
from recuerdo.nodes.call_llm.relevance import choose
from recuerdo.nodes.call_llm.vocabulary import language_of
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)

FROM_PROMPT = "recuerdo_nothing_new"
"""Key in a reply's ``response_metadata``: the reply only quotes the prompt, so nothing is learnt from it."""

USAGE_ESTIMATED = "usage_estimated"
"""Key in a reply's ``response_metadata``: its token counts are a guess, so no factor is learnt from them."""

_LONGEST_QUOTE = 400
# How the instructions of a turn ask for a language.
_ASKED_LANGUAGE = (("es", "Responde en español"), ("en", "Answer in English"))
_BYTES_PER_TOKEN = 4
_WORD_AND_SPACE = re.compile(r"\s*\S+\s*")


class OfflineResponder(LocalModel):
    """A chat model that quotes the lines of its prompt that answer the user's last message.

    It takes nothing from anywhere but the prompt, so a fact that is missing from the prompt is missing from
    the reply. It answers in the language of that message, says that no model is configured and how to set
    one, and calls no tools. The same prompt always gets the same reply. Token counts are estimates, marked
    by ``response_metadata["usage_estimated"]``: nothing should be learnt from them. (Issue 2, point 5.)
    """

    @property
    def _llm_type(self) -> str:
        return "recuerdo-offline"

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """See LocalModel."""
        reply = _answer(messages)
        return AIMessage(content=reply, usage_metadata=_usage(messages, reply), response_metadata=_metadata())

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield from _chunks(messages, _answer(messages))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(messages, await asyncio.to_thread(_answer, messages)):
            yield chunk


def _answer(messages: Sequence[BaseMessage]) -> str:
    notice = sentences("no_model")
    prompt = read_prompt(messages, own_marks=(notice.es, notice.en))
    language = _language(prompt)
    quotes = _quotes(choose(prompt), language) or sentences("nothing_found").in_language(language)
    return f"{quotes}\n\n{notice.in_language(language)}"


def _language(prompt: PromptFacts) -> str:
    """The one that the prompt asks for; else that of the user's message, of earlier ones, then of the data."""
    asked = [language for line in prompt.instructions for language, words in _ASKED_LANGUAGE if words in line]
    if asked:
        return asked[-1]
    return language_of([prompt.question, *prompt.earlier, " ".join(fact.text for fact in prompt.facts)])


def _quotes(facts: Sequence[Fact], language: str) -> str:
    """The facts under the titles of their sections, the section with the best one first."""
    order = list(dict.fromkeys(fact.section for fact in facts))
    grouped = groupby(sorted(facts, key=lambda fact: order.index(fact.section)), lambda fact: fact.section)
    return "\n\n".join(
        "\n".join([f"{_title(section, language)}:", *(f"- {_quote(fact, language)}" for fact in group)])
        for section, group in grouped
    )


def _title(section: str, language: str) -> str:
    known = section if section in SECTIONS else "other"
    return sentences(f"section_{known}").in_language(language)


def _quote(fact: Fact, language: str) -> str:
    words = fact.text if len(fact.text) <= _LONGEST_QUOTE else f"{fact.text[:_LONGEST_QUOTE].rstrip()}…"
    if fact.section not in (HISTORY, REPLIES):
        return words
    return sentences("said", words=words).in_language(language)


def _chunks(messages: Sequence[BaseMessage], reply: str) -> Iterator[ChatGenerationChunk]:
    for word in _WORD_AND_SPACE.findall(reply):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    last = AIMessageChunk(
        content="",
        usage_metadata=_usage(messages, reply),
        response_metadata=_metadata(),
        chunk_position="last",
    )
    yield ChatGenerationChunk(message=last)


def _usage(messages: Sequence[BaseMessage], reply: str) -> UsageMetadata:
    asked = sum(_tokens(message.text) for message in messages)
    said = _tokens(reply)
    return UsageMetadata(input_tokens=asked, output_tokens=said, total_tokens=asked + said)


def _tokens(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // _BYTES_PER_TOKEN)


def _metadata() -> dict[str, Any]:
    return {"model_name": "offline", "finish_reason": "stop", USAGE_ESTIMATED: True, FROM_PROMPT: True}
