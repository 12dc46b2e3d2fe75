"""Which conversation this is: since when, how many messages, about what (RF-1, RF-42, RF-44) as a block."""

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import as_data, fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung


def conversation_blocks(
    data: Gathered, conversation: str, messages_count: int, topics: list[str], count: CountTokens
) -> list[Block]:
    """The conversation's own facts. They change each turn, so they stand after the history (C-22)."""
    say = data.phrasing.say
    since = data.phrasing.moment(data.started_at or data.now)
    lines = [say("conversation", id=as_data(conversation), since=since, count=messages_count)]
    if topics:
        lines.append(say("recent_topics", topics="; ".join(as_data(topic) for topic in topics)))
    rungs = [text_rung("full", fenced("conversation", lines), count), REMOVED]
    return [make_block("conversation", "medium", "turn", rungs, source="history")]
