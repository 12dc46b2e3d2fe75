"""Recent topics of a conversation: short labels with their symbols (RF-44, RF-53, A-13, IM-42)."""

from recuerdo.nodes.build_context.symbols import find_indicators
from recuerdo.state.record import TopicRecord
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import Topic, TurnState, Work

sentences = load_sentences(__package__)


def update_topics(state: TurnState, work: Work, at_most: int) -> tuple[list[Topic], TopicRecord]:
    """The topics after this turn, oldest first without duplicates, and what the turn did to them.

    The newest topic stands last: returning to an old one moves it there.
    """
    before = list(state.get("topics") or [])
    topic = _topic_of(work)
    if topic is None:
        return before, TopicRecord(name=before[-1]["label"] if before else None)
    last = before[-1]["label"] if before else None
    known = [old for old in before if old["label"] == topic["label"]]
    symbols = known[0]["symbols"] if known and not topic["symbols"] else topic["symbols"]
    others = [old for old in before if old["label"] != topic["label"]]
    after = [*others, Topic(label=topic["label"], symbols=symbols)][-at_most:]
    changed = last is not None and last != topic["label"]
    record = TopicRecord(name=topic["label"], changed=changed, returned_to=changed and bool(known))
    return after, record


def _topic_of(work: Work) -> Topic | None:
    """The turn's topic by what it names; None for small talk and for what only goes on."""
    if work["intent"] in ("greeting", "preference") or work["resolved_by"] == "follow_up":
        return None
    language = work["turn"]["language"]
    if work["resolved_by"] == "portfolio":
        return Topic(label=sentences("topic_portfolio").in_language(language), symbols=work["symbols"])
    subjects = work["symbols"]
    if subjects:
        key = "topic_trade" if work["intent"] == "trade" else "topic_symbol"
    elif subjects := find_indicators(work["turn"]["redacted"]):
        key = "topic_indicator"
    else:
        return None
    label = sentences(key, subject=", ".join(subjects)).in_language(language)
    return Topic(label=label, symbols=work["symbols"])
