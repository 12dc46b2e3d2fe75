"""What a model answers when it reads a message: JSON in a text, as models write it, into typed items."""

from typing import Annotated, Any, Literal

from langchain_core.utils.json import parse_partial_json
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

LONGEST_ANSWER = 20_000
"""Characters of an answer that are looked at."""

MOST_ITEMS = 10
"""Items of one kind; what comes after them is left out."""

_END_OF_THOUGHT = "</think>"


class StatedPreference(BaseModel):
    """A preference that the model read, not yet checked."""

    key: str
    value: Any
    quote: str


class StatedSymbol(BaseModel):
    """A symbol that the model read."""

    symbol: str
    quote: str


class StatedFact(BaseModel):
    """A fact that the model read."""

    text: str
    quote: str
    confidence: float = Field(default=0.5, ge=0, le=1)


class StatedEnd(BaseModel):
    """What the model read to be over: a fact by its number among the known ones, a key or a symbol."""

    type: Literal["fact", "preference", "symbol"]
    quote: str
    known: int | None = None
    value: str | None = None


def _readable(kind: type[BaseModel]) -> BeforeValidator:
    """Of a list, the entries that can be read: one broken entry does not cost the others."""

    def readable(value: Any) -> list[BaseModel]:
        entries = value if isinstance(value, list) else []
        found: list[BaseModel] = []
        for entry in entries[:MOST_ITEMS]:
            try:
                found.append(kind.model_validate(entry))
            except ValidationError:
                continue
        return found

    return BeforeValidator(readable)


class Answer(BaseModel):
    """What a model answered; lists that it left out are empty."""

    preferences: Annotated[list[StatedPreference], _readable(StatedPreference)] = []
    symbols: Annotated[list[StatedSymbol], _readable(StatedSymbol)] = []
    facts: Annotated[list[StatedFact], _readable(StatedFact)] = []
    forget: Annotated[list[StatedEnd], _readable(StatedEnd)] = []


SHAPE = {
    "preferences": [{"key": "", "value": "", "quote": ""}],
    "symbols": [{"symbol": "", "quote": ""}],
    "facts": [{"text": "", "quote": "", "confidence": 1}],
    "forget": [{"type": "fact", "known": 1, "value": None, "quote": ""}],
}
"""The shape that is asked for."""


def read_answer(text: str) -> Answer | None:
    """A model's answer; None when it cannot be read."""
    said = text.rpartition(_END_OF_THOUGHT)[2]
    start = said.find("{")
    if start < 0:
        return None
    try:
        return Answer.model_validate(parse_partial_json(said[start : start + LONGEST_ANSWER]))
    except (ValueError, RecursionError):
        return None
