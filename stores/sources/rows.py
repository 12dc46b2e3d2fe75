"""What sources give, whoever implements them: profiles, quotes, positions and the like, checked and immutable.

Money is ``Decimal``, exact. Instants are aware and stored with offset (C-21).
"""

import datetime as dt
import json
import re
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel import Locale
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

MOST_WHOLE_DIGITS = 18
"""Digits of a number before the point."""

MOST_DECIMALS = 40
"""Digits behind it: twice what the smallest unit of any currency has, and as many as a short float can show."""

EARLY_BY = dt.timedelta(minutes=1)
"""How far a source's clock may be ahead of ours; an instant beyond that has not been."""

_MORE_CHARACTERS = 4000
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_EARLIEST, _LATEST = dt.date(1900, 1, 1), dt.date(2199, 12, 31)
# Not the basic format nor week dates, which fromisoformat reads too: 20251205 may be a slip for a number.
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOST_SYMBOL = 24
_SYMBOL = re.compile(r"[\^$]?[^\W_]{1,21}(?:[.\-/=:&_][^\W_]{1,10}){0,2}[*+]?")
_CURRENCY = re.compile("[A-Za-z]{3,5}")
_LANGUAGE = re.compile("([a-z]{2,3})(?:[-_][a-z0-9]{2,8}){0,3}", re.IGNORECASE)


def _sized(value: Decimal) -> Decimal:
    """With so few digits on both sides of the point that every figure computed from it can be written.

    The exponent is looked at alone: arithmetic with an extreme one overflows.
    """
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "pydantic has refused what is not finite"
    if exponent < -MOST_DECIMALS or max(value.adjusted() + 1, exponent) > MOST_WHOLE_DIGITS:
        raise PydanticCustomError("number_out_of_bounds", "number too large, too small or too long")
    return value


def _number_given(value: Any) -> Any:
    """A number or its text in plain digits: Decimal reads 1_000 and digits of other scripts too."""
    if isinstance(value, bool):
        raise PydanticCustomError("decimal_type", "a number is needed")
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise PydanticCustomError("decimal_parsing", "a number is needed")
    return value


def _instant(value: Any, info: ValidationInfo) -> Any:
    """ISO 8601 with offset; without one it is read in the zone that the loader was told, else refused.

    A bare number is no instant: it might be seconds, milliseconds or a date.
    """
    if isinstance(value, str):
        text = value.strip()
        try:
            value = dt.datetime.fromisoformat(text) if _ISO_DAY.match(text) else None
        except ValueError:
            value = None
    if not isinstance(value, dt.datetime):
        raise PydanticCustomError("datetime_invalid", "an instant in ISO 8601 is needed")
    if value.tzinfo is None and info.context and info.context.get("zone"):
        value = value.replace(tzinfo=info.context["zone"])
    _in_range(value.date())
    return value


def _has_been(instant: dt.datetime, info: ValidationInfo) -> dt.datetime:
    """Not after the clock that the reader was told, if any: a price of tomorrow would never be stale (IM-40)."""
    now = info.context.get("now") if info.context else None
    if now is not None and instant > now + EARLY_BY:
        raise PydanticCustomError("datetime_in_future", "an instant in the future")
    return instant


def _day(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        try:
            value = dt.date.fromisoformat(text) if _ISO_DAY.fullmatch(text) else None
        except ValueError:
            value = None
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


def is_symbol(text: str) -> bool:
    """Whether ``text`` is shaped like the name of an instrument: AAPL, BRK.B, BTC/USD, ^GSPC, EURUSD=X, 0700.HK.

    Symbols stand in instructions to the model, so that no sentence may pass for one.
    """
    return len(text) <= _MOST_SYMBOL and _SYMBOL.fullmatch(text) is not None


def _symbol(symbol: str, info: ValidationInfo) -> str:
    """In the spelling that the loader was given, if any: one instrument, one name."""
    if not is_symbol(symbol):
        raise PydanticCustomError("symbol_invalid", "a symbol is needed")
    spell = info.context.get("spell") if info.context else None
    return spell(symbol) if spell else symbol


def _currency(code: str) -> str:
    if not _CURRENCY.fullmatch(code):
        raise PydanticCustomError("currency_invalid", "a currency code is needed")
    return code


@cache
def _languages() -> frozenset[str]:
    """Every code of two letters."""
    return frozenset(code for code in map(str, Locale("en").languages) if len(code) == 2)


def _language(tag: str) -> str:
    """A tag such as es or es-MX. Codes of three letters are too many to know them all."""
    found = _LANGUAGE.fullmatch(tag)
    if not found or (len(found[1]) == 2 and found[1].lower() not in _languages()):
        raise PydanticCustomError("language_unknown", "unknown language")
    return tag


def _market(code: str, info: ValidationInfo) -> str:
    """One that has a calendar, where the reader can tell."""
    known = info.context.get("has_calendar") if info.context else None
    if known and not known(code):
        raise PydanticCustomError("market_unknown", "unknown market")
    return code


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
"""Finite, with at most MOST_WHOLE_DIGITS before the point and MOST_DECIMALS behind it."""

Amount = Annotated[Number, Field(ge=0)]
"""A price or a volume: never negative."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_storable)]
Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_printable)
]
"""What a row is known by, one line: a user, an id. As long as a scope's names may be."""

TimeZone = Annotated[Name, AfterValidator(_known_zone)]
Symbol = Annotated[Name, AfterValidator(_symbol)]
Currency = Annotated[Name, AfterValidator(_currency)]
"""A code of three to five letters: USD, GBp, USDT."""

Language = Annotated[Text, AfterValidator(_language)]
Market = Annotated[Text, AfterValidator(_market)]
Instant = Annotated[AwareDatetime, BeforeValidator(_instant), AfterValidator(_has_been)]
"""When something was; never in the future of the clock that the reader was told."""

Day = Annotated[dt.date, BeforeValidator(_day)]


class Row(BaseModel):
    """One row of platform data. ``keys`` are the fields that tell it from the others of its kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    keys: ClassVar[tuple[str, ...]] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """The values of ``keys``."""
        return tuple(getattr(self, name) for name in self.keys)


class Profile(Row):
    """Who a user is (RF-36). ``subscription`` is the seed's ``plan``; ``main_market`` a calendar code."""

    keys = ("user",)

    user: Name
    name: Text
    subscription: Text
    risk_profile: Text
    experience: Text
    language: Language
    timezone: TimeZone
    main_market: Market = "XNYS"
    entitlements: tuple[Text, ...] = ()


class Quote(Row):
    """The price of a symbol (RF-12). ``change_percent`` 1.2 is +1.2 %; ``more`` is plain JSON data."""

    keys = ("symbol",)

    symbol: Symbol
    price: Amount
    currency: Currency
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
    currency: Currency


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
