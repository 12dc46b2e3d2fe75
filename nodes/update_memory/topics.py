"""Recent topics of a conversation: short labels with their symbols (RF-44, RF-53, A-13, IM-42)."""

from collections.abc import Sequence

from recuerdo.state.record import TopicRecord
from recuerdo.state.turn import Topic, TopicReading, TurnState, Work


def update_topics(state: TurnState, work: Work, at_most: int) -> tuple[list[Topic], TopicRecord]:
    """The topics after this turn, and for the record what the turn did to them."""
    reading = work["topic"]
    topics = recent_topics(state.get("topics") or [], reading["topic"], at_most)
    return topics, topic_record(reading)


def topic_record(reading: TopicReading) -> TopicRecord:
    """What a turn did to the topics, for its record."""
    topic = reading["topic"]
    return TopicRecord(
        name=topic["label"] if topic else None,
        changed=reading["changed"],
        returned_to=reading["returned_to"],
        reason=reading["reason"],
        similarity=reading["similarity"],
        maybe=reading.get("maybe", []),
    )


def recent_topics(before: Sequence[Topic], topic: Topic | None, at_most: int) -> list[Topic]:
    """``before`` with ``topic`` as the newest: ``at_most``, oldest first, none twice (A-13).

    Returning to a topic moves it to the end.
    """
    if topic is None:
        return list(before)
    others = [old for old in before if old["key"] != topic["key"]]
    return [*others, topic][-at_most:]
