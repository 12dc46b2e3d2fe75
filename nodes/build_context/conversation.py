"""Which conversation this is: since when, how many messages, about what (RF-1, RF-42, RF-44) as a block."""

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import as_data, fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, Section, make_block, text_rung

MOST_TOPICS = 5
"""Recent topics in the prompt; the context document has all that the plan keeps."""


def conversation_blocks(
    data: Gathered, conversation: str, messages_count: int, topics: list[str], count: CountTokens
) -> list[Block]:
    """What holds for the whole conversation, before the history; what changes each turn, after it (C-22)."""
    lasting = data.lasting_phrasing
    since = lasting.moment(data.started_at or data.now)
    whole = [lasting.say("conversation", id=as_data(conversation), since=since)]
    until_now = [data.phrasing.say("earlier_messages", count=messages_count)]
    if topics:
        labels = "; ".join(as_data(topic) for topic in topics[-MOST_TOPICS:])
        until_now.append(data.phrasing.say("recent_topics", topics=labels))
    return [
        _block("conversation", "profile", whole, count),
        _block("conversation_so_far", "turn", until_now, count),
    ]


def _block(name: str, section: Section, lines: list[str], count: CountTokens) -> Block:
    rungs = [text_rung("full", fenced(name, lines), count), REMOVED]
    return make_block(name, "medium", section, rungs, source="history")
