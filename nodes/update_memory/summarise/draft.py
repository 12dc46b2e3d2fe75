"""Reads a model's summary: JSON in a text, as models write it, into lines without sensitive data (RF-33)."""

from collections.abc import Iterable
from typing import Annotated, Any

from langchain_core.utils.json import parse_partial_json
from pydantic import BaseModel, BeforeValidator, ValidationError

from recuerdo.nodes.build_context.phrasing import as_data
from recuerdo.state.summary import Kind, Line, wrapped
from recuerdo.stores.sensitive import redact

LONGEST_ANSWER = 20_000
"""Characters of an answer that are looked at; reading a broken one takes the square of its length."""

_END_OF_THOUGHT = "</think>"


def _as_list(value: Any) -> list[Any]:
    """One sentence for a list of one, nothing for an empty one: models write both."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


Sentences = Annotated[list[str], BeforeValidator(_as_list)]


class _Draft(BaseModel):
    goals: Sentences = []
    instructions: Sentences = []
    decisions: Sentences = []
    names: Sentences = []
    figures: Sentences = []
    open_questions: Sentences = []
    points: Sentences = []


KINDS: dict[str, Kind] = {
    "goals": "goal",
    "instructions": "instruction",
    "decisions": "decision",
    "names": "name",
    "figures": "figure",
    "open_questions": "question",
    "points": "point",
}
"""The keys of the answer, and what their sentences are."""


def read_draft(answer: str) -> list[Line]:
    """The lines of a model's answer; none when it cannot be read or says nothing.

    Words around the object, a code fence, a missing end and a sentence in place of a list are put up with.
    """
    text = answer.rpartition(_END_OF_THOUGHT)[2]
    start = text.find("{")
    if start < 0:
        return []
    try:
        draft = _Draft.model_validate(parse_partial_json(text[start : start + LONGEST_ANSWER]))
    except (ValueError, RecursionError, ValidationError):
        return []
    return [line for name, kind in KINDS.items() for line in _lines(kind, getattr(draft, name))]


def _lines(kind: Kind, said: Iterable[str]) -> list[Line]:
    return [Line(kind, piece) for text in said for piece in wrapped(as_data(redact(text).text))]
