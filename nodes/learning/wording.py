"""How a proposal asks the person: a question in both languages, with the limits that were found (OR-32)."""

from collections.abc import Iterable, Sequence
from datetime import date

from recuerdo.nodes.learning.fields import field_of
from recuerdo.nodes.learning.limits import Limits
from recuerdo.state.plan import Condition, Expectation
from recuerdo.state.sentences import Sentence, load_sentences

sentences = load_sentences(__package__)

_PHRASES = {"<=": "at_most", ">": "more_than", ">=": "at_least", "==": "exactly"}
_MESSAGE_CHARACTERS = 160


def ask_for_rule(found: Limits) -> Sentence:
    """Whether calls within these limits may pass, and what the rule does not look at."""
    conditions = _enumerated([_phrase(condition) for condition in found.rule.when])
    question = sentences("rule_question", tool=found.rule.tool, conditions=conditions)
    if not found.ignored:
        return question
    rest = sentences("rule_ignores", fields=", ".join(found.ignored))
    return Sentence(question.es + rest.es, question.en + rest.en)


def ask_for_case(message: str, expect: Expectation) -> Sentence:
    """Whether a conversation that a person had to end becomes a case."""
    named = [("case_called", expect.calls), ("case_refused", expect.calls_not)]
    outcome = _enumerated([sentences(key, tools=", ".join(tools)) for key, tools in named if tools])
    short = message if len(message) <= _MESSAGE_CHARACTERS else message[: _MESSAGE_CHARACTERS - 1] + "…"
    return sentences("case_question", message=" ".join(short.split()), outcome=outcome)


def ask_for_deactivation(tool: str, since: date, tokens: int, *, used: bool) -> Sentence:
    """Whether a tool goes that nobody has used since that day, or ever."""
    key = "tool_unused" if used else "tool_never_used"
    return sentences(key, tool=tool, date=since.isoformat(), tokens=tokens)


def _phrase(condition: Condition) -> Sentence:
    field, value = field_of(condition.field), condition.value
    noun = field.noun
    if isinstance(value, str | bool):
        said = value if isinstance(value, str) else sentences("yes" if value else "no")
        return sentences("kind", noun=noun if noun.es else condition.field, value=said)
    amount = Sentence(f"{value} {field.unit.es}".strip(), f"{value} {field.unit.en}".strip())
    key = _PHRASES[condition.op]
    return sentences(key, noun=noun, amount=amount) if noun.es else sentences(f"{key}_alone", amount=amount)


def _enumerated(parts: Sequence[Sentence]) -> Sentence:
    last = sentences("and")
    return Sentence(_joined((one.es for one in parts), last.es), _joined((one.en for one in parts), last.en))


def _joined(texts: Iterable[str], last: str) -> str:
    *first, end = texts
    return last.join([", ".join(first), end]) if first else end
