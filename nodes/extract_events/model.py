"""The extractor that asks a model for structured output, and checks by code what it answers (LA-26, IM-7)."""

import asyncio

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.constants import TAG_NOSTREAM

from recuerdo.nodes.build_context.phrasing import as_data
from recuerdo.nodes.call import Call
from recuerdo.nodes.call_llm.usage import call_usage
from recuerdo.nodes.extract_events.answer import TOOL, checked, read_answer, schema_of, shape
from recuerdo.nodes.extract_events.protocol import Extracted, Heard
from recuerdo.state.blocks import message_tokens
from recuerdo.state.counting import model_family
from recuerdo.state.errors import ModelError
from recuerdo.state.sentences import load_sentences
from recuerdo.state.usage import CallUsage

prompts = load_sentences(__package__, "prompts.yaml")
sentences = load_sentences(__package__)

SECONDS = 60.0
"""How long the model may take; well within the lease."""

MAX_OUTPUT = 1500
"""Output tokens of an answer."""


class ModelExtractor:
    """Asks the plan's extraction model, or the chat model where it names none (IM-7)."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def extract(self, heard: Heard) -> Extracted:
        """What stands the checks. ModelError when no readable answer comes: it is tried again later."""
        usage: list[CallUsage] = []
        try:
            async with asyncio.timeout(SECONDS):
                answer = read_answer(await self._ask(heard, usage))
        except Exception as error:
            # The text of a provider's error may quote the key or the conversation.
            raise ModelError(sentences("extraction_failed", kind=type(error).__name__)) from None
        if answer is None:
            raise ModelError(sentences("extraction_unreadable"))
        found, refused = await asyncio.to_thread(checked, answer, heard)
        return Extracted(found, "model", refused, usage)

    async def _ask(self, heard: Heard, usage: list[CallUsage]) -> AIMessage:
        services = self._call.services
        request, named = _request(heard), heard.settings.extraction.model
        own = {"model": named} if named else {}
        model = services.model.bind_tools([schema_of(heard.settings)], max_tokens=MAX_OUTPUT, **own)
        reply = await model.ainvoke(request, {"tags": [TAG_NOSTREAM], "run_name": "key_events"})
        estimated = sum(message_tokens(message, services.counter.count) for message in request)
        used = call_usage(reply, estimated, self._call)
        usage.append({**used, "family": model_family(named)} if named else used)
        return reply


def _request(heard: Heard) -> list[AnyMessage]:
    settings = heard.settings
    instructions = prompts("instructions", tool=TOOL, shape=shape()).in_language(heard.language)
    if settings.extraction.rules:
        rules = "\n".join(f"- {rule}" for rule in settings.extraction.rules)
        instructions += f"{prompts('rules').in_language(heard.language)}\n{rules}\n"
    parts = {
        "types": [f"- {kind.name}: {kind.description}" for kind in settings.types],
        "open": [
            f"{number}. {event.type} | {event.status} | {as_data(event.summary)}"
            for number, event in enumerate(heard.known, start=1)
        ],
        "conversation": [f"{one.role}: {as_data(one.text)}" for one in heard.spoken],
    }
    data = "\n".join(f"<{name}>\n" + "\n".join(lines) + f"\n</{name}>" for name, lines in parts.items())
    return [SystemMessage(instructions), HumanMessage(data)]
