"""What sources give, whoever implements them: profiles, quotes, positions and the like, checked and immutable.

Money is ``Decimal``, exact. Instants are aware and stored with offset (C-21).
"""

import datetime as dt
import json
import re
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

_LARGEST = Decimal(10) ** 18
_MOST_DIGITS = 60
_MORE_CHARACTERS = 4000
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_EARLIEST, _LATEST = dt.date(1900, 1, 1), dt.date(2199, 12, 31)


def _sized(value: Decimal) -> Decimal:
    """Neither endless nor so large that a figure computed from it is."""
    if abs(value) >= _LARGEST or len(value.as_tuple().digits) > _MOST_DIGITS:
        raise PydanticCustomError("number_too_large", "number too large or too long")
    return value


def _number_given(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("decimal_type", "a number is needed")
    return value


def _instant(value: Any, info: ValidationInfo) -> Any:
    """ISO 8601 with offset; without one it is read in the zone that the loader was told, else refused.

    A bare number is no instant: it might be seconds, milliseconds or a date.
    """
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            raise PydanticCustomError("datetime_invalid", "an instant in ISO 8601 is needed") from None
    if not isinstance(value, dt.datetime):
        raise PydanticCustomError("datetime_invalid", "an instant in ISO 8601 is needed")
    if value.tzinfo is None and info.context and info.context.get("zone"):
        value = value.replace(tzinfo=info.context["zone"])
    _in_range(value.date())
    return value


def _day(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = dt.date.fromisoformat(value.strip())
        except ValueError:
            raise PydanticCustomError("date_invalid", "a date YYYY-MM-DD is needed") from None
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise PydanticCustomError("date_invalid", "a date YYYY-MM-DD is needed")
    return _in_range(value)


def _in_range(day: dt.date) -> dt.date:
    if not _EARLIEST <= day <= _LATEST:
        raise PydanticCustomError("date_out_of_range", "a date from 1900 to 2199 is needed")
    return day


def _storable(text: str) -> str:
    """Without NUL and lone surrogates, which PostgreSQL refuses."""
    if _UNSTORABLE.search(text):
        raise PydanticCustomError("text_unprintable", "control characters")
    return text


def _printable(name: str) -> str:
    if not name.isprintable():
        raise PydanticCustomError("text_unprintable", "control characters")
    return name


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PydanticCustomError("timezone_unknown", "unknown time zone") from None
    return name


def _symbol(symbol: str, info: ValidationInfo) -> str:
    """In the spelling that the loader was given, if any: one instrument, one name."""
    spell = info.context.get("spell") if info.context else None
    return spell(symbol) if spell else symbol


def _plain(more: dict[str, Any]) -> dict[str, Any]:
    """As plain JSON data; an exact number becomes its text."""
    try:
        text = json.dumps(more, allow_nan=False, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        raise PydanticCustomError("more_invalid", "not plain JSON data") from None
    if len(text) > _MORE_CHARACTERS or "\\u0000" in text or _UNSTORABLE.search(text):
        raise PydanticCustomError("more_invalid", "too large, or with characters that cannot be kept")
    plain: dict[str, Any] = json.loads(text)
    return plain


Number = Annotated[Decimal, BeforeValidator(_number_given), AfterValidator(_sized)]
"""Finite, below 10^18."""

Amount = Annotated[Number, Field(ge=0)]
"""A price or a volume: never negative."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_storable)]
Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_printable)
]
"""What a row is known by, one line: a user, an id. As long as a scope's names may be."""

TimeZone = Annotated[Name, AfterValidator(_known_zone)]
Symbol = Annotated[Name, AfterValidator(_symbol)]
Instant = Annotated[AwareDatetime, BeforeValidator(_instant)]
Day = Annotated[dt.date, BeforeValidator(_day)]


class Row(BaseModel):
    """One row of platform data. ``keys`` are the fields that tell it from the others of its kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    keys: ClassVar[tuple[str, ...]] = ()


class Profile(Row):
    """Who a user is (RF-36). ``subscription`` is the seed's ``plan``; ``main_market`` a calendar code."""

    keys = ("user",)

    user: Name
    name: Text
    subscription: Text
    risk_profile: Text
    experience: Text
    language: Text
    timezone: TimeZone
    main_market: Text = "XNYS"
    entitlements: tuple[Text, ...] = ()


class Quote(Row):
    """The price of a symbol (RF-12). ``change_percent`` 1.2 is +1.2 %; ``more`` is plain JSON data."""

    keys = ("symbol",)

    symbol: Symbol
    price: Amount
    currency: Name
    as_of: Instant
    change_percent: Number | None = None
    volume: Amount | None = None
    open: Amount | None = None
    high: Amount | None = None
    low: Amount | None = None
    previous_close: Amount | None = None
    more: Annotated[dict[str, Any], AfterValidator(_plain)] = Field(default_factory=dict)


class Position(Row):
    """An open position (RF-13); ``avg_price`` per unit. Of quantity 0 it is closed."""

    keys = ("user", "symbol")

    user: Name
    symbol: Symbol
    quantity: Number
    avg_price: Amount
    currency: Name


class Alert(Row):
    """A price alert (RF-14, RF-41); once triggered it is no longer active for the user."""

    keys = ("user", "id")

    user: Name
    id: Name
    symbol: Symbol
    condition: Literal["<=", "<", ">=", ">"]
    price: Amount
    active: bool = True
    triggered_at: Instant | None = None


class Signal(Row):
    """A prediction for a symbol (RF-45); ``confidence`` 0 to 1."""

    keys = ("symbol",)

    symbol: Symbol
    prediction: Text
    confidence: Annotated[Number, Field(ge=0, le=1)]
    updated_at: Instant


class CourseProgress(Row):
    """How far a user has come in a course (RF-15); ``percent`` 0 to 100. ``topic`` is what it is about."""

    keys = ("user", "course")

    user: Name
    course: Name
    topic: Text
    percent: Annotated[Number, Field(ge=0, le=100)]
    next_lesson: Text | None = None
    updated_at: Instant


class EconomicEvent(Row):
    """A date of the economic calendar (RF-19, RF-39)."""

    keys = ("event", "date")

    event: Name
    date: Day
    impact: Literal["low", "medium", "high"]
    country: Text | None = None
