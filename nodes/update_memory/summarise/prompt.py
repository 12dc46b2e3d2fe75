"""What the model is asked when it writes the summary: short enough for the plan's token limits (RF-34)."""

import json
from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from recuerdo.nodes.update_memory.summarise.draft import KINDS
from recuerdo.state.blocks import CountTokens
from recuerdo.state.rounds import plain
from recuerdo.state.sentences import load_sentences

prompts = load_sentences(__package__, "prompts.yaml")

LONGEST_MESSAGE = 1500
"""Characters of one message that the model is shown; what matters beyond them is added by code."""


def summary_prompt(
    previous: str, messages: Sequence[AnyMessage], language: str, max_tokens: int, count: CountTokens
) -> list[AnyMessage]:
    """The request: instructions, then the summary so far and the messages, fenced as data.

    The oldest messages are left out where all of them are over ``max_tokens``.
    """
    shape = json.dumps({key: [] for key in KINDS})
    instructions = prompts("instructions", shape=shape).in_language(language)
    rows = [_row(message, language) for message in plain(messages)]
    left = max_tokens - count(instructions) - count(previous)
    kept: list[str] = []
    for row in reversed(rows):
        left -= count(row + "\n")
        if left < 0:
            break
        kept.append(row)
    said = "\n".join(reversed(kept))
    data = f"<summary>\n{previous}\n</summary>\n<conversation>\n{said}\n</conversation>"
    return [SystemMessage(instructions), HumanMessage(data)]


def _row(message: AnyMessage, language: str) -> str:
    text = str(message.text)
    text = text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "…"
    if isinstance(message, HumanMessage):
        return prompts("said_by_user", text=text).in_language(language)
    return prompts("said_by_assistant", text=text).in_language(language)
