"""How much of its results a tool step shows: the whole stays in the log and can be read by reference (C-26)."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, ToolMessage

from recuerdo.nodes.build_context.history import present_blocks
from recuerdo.nodes.call import Call
from recuerdo.state.blocks import Block, message_tokens
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import Work
from recuerdo.stores.tokens import TokenCounter

sentences = load_sentences(__package__)


def cap_results(
    results: Sequence[ToolMessage], present: list[AnyMessage], work: Work, call: Call
) -> list[ToolMessage]:
    """The results cut so that the next request can hold them all: the newest step is critical as a whole.

    ``present`` is the round up to the calls. Each result may take the plan's cap, and all together the
    plan's cap of a step, or what is left of the limit beside all that cannot give way (RF-34).
    """
    limits, counter = call.services.plan.limits, call.services.counter
    language = work["turn"]["language"]
    room = min(limits.tool_step, _room(present, work, call))
    share = room // len(results)
    return [_capped(result, share, limits.tool_result, language, counter) for result in results]


def _room(present: list[AnyMessage], work: Work, call: Call) -> int:
    """Tokens that are left for results when everything else has given way as far as it can."""
    services = call.services
    others = [block for block in work["blocks"] if block["section"] != "message"]
    ours = present_blocks(present, work["turn"]["language"], services.counter.count)
    limit = int(services.plan.limits.max_input / services.factor.value)
    return limit - work["estimate"]["overhead"] - _least([*others, *ours])


def _least(blocks: Sequence[Block]) -> int:
    return sum(block["rungs"][-1]["tokens"] for block in blocks)


def _capped(
    result: ToolMessage, share: int, longest: int, language: str, counter: TokenCounter
) -> ToolMessage:
    """The result cut to ``longest`` tokens of text, or less where its share of the step, frame included, is less.

    A line says how to read the rest.
    """
    text = str(result.text)
    frame = message_tokens(result.model_copy(update={"content": ""}), counter.count)
    cap = min(longest, share - frame)
    if counter.count(text) <= cap:
        return result
    note = "\n" + sentences("tool_result_cut", reference=result.id).in_language(language)
    kept = counter.truncate(text, cap - counter.count(note))
    return result.model_copy(update={"content": kept + note})
