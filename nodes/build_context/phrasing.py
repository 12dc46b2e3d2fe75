"""How facts are written for the user: money, numbers, dates and fences, in his language and locale (RF-20)."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.dates import format_date, format_time, format_timedelta
from babel.numbers import format_decimal, get_currency_precision, get_territory_currencies

from recuerdo.state.blocks import CountTokens
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)

_LONGEST_TOKEN = 20
"""Characters that no token of a plain text is longer than, so that an endless text is cut in no time."""

_LEAST = Decimal("0.01")
"""Amounts below it keep two significant digits: rounded to cents they would be nothing."""

_TAG = re.compile(r"<(\s*/?\s*[a-z_]+\s*)>", re.IGNORECASE)


def as_data(text: str) -> str:
    """Text from outside as one line of data: it cannot open or close a fence (design section 4)."""
    return _without_tags(" ".join(text.split()))


def shortened(text: str, tokens: int, count: CountTokens) -> str:
    """The beginning of ``text`` with an ellipsis, ``tokens`` tokens at most; the text itself when it fits."""
    if count(text) <= tokens:
        return text
    ends = range(min(len(text), tokens * _LONGEST_TOKEN))
    end = bisect_right(ends, tokens, key=lambda end: count(text[:end] + "…")) - 1
    while end > 0 and count(text[:end] + "…") > tokens:
        end -= 1
    return text[: max(end, 0)].rstrip() + "…"


def fenced(name: str, lines: list[str]) -> str:
    """A labelled block of facts, one per line; empty when there are none. No line can open or close a fence."""
    if not lines:
        return ""
    written = (f"- {_without_tags(line)}" for line in lines)
    return "\n".join([f"<{name}>", *written, f"</{name}>"])


def _without_tags(text: str) -> str:
    return _TAG.sub(r"‹\1›", text)


@dataclass(frozen=True)
class Phrasing:
    """Writes facts in one language, one locale and one time zone.

    ``region`` is the territory that the user's profile names ("ES" of "es-ES"); without one it is that of the time
    zone. ``now`` is the turn's clock where facts may be told beside it: what is of today is said so.
    """

    language: str
    timezone: ZoneInfo
    region: str = ""
    now: datetime | None = None

    @property
    def locale(self) -> Locale:
        """Language with territory: Spanish in Mexico City writes 1,185.50, in Madrid 1.185,50."""
        return _locale(self.language, self.region, self.timezone.key)

    def say(self, key: str, /, **values: object) -> str:
        """The sentence ``key`` in the user's language."""
        return sentences(key, **values).in_language(self.language)

    def listed(self, names: Sequence[str], most: int) -> str:
        """The first ``most`` names, and how many there are beyond them; empty without any."""
        more = [self.say("and_more", count=len(names) - most)] if len(names) > most else []
        return ", ".join([*names[:most], *more])

    def capped(self, lines: Sequence[str], most: int) -> list[str]:
        """The first ``most`` lines, and one that says how many are left out."""
        more = [self.say("not_detailed", count=len(lines) - most)] if len(lines) > most else []
        return [*lines[:most], *more]

    def value(self, text: str) -> str:
        """A word of a known vocabulary (bullish, moderate, high) in the user's language; other text as data."""
        key = "value_" + "_".join(re.findall(r"[a-z]+", text.lower()))
        return self.say(key) if key in sentences else as_data(text)

    def price(self, amount: Decimal) -> str:
        """An amount as it was given, with at least two decimals, without currency."""
        return str(format_decimal(amount, format="#,##0.00", locale=self.locale, decimal_quantization=False))

    def money(self, amount: Decimal, currency: str) -> str:
        """A computed amount, rounded half to even to the decimals of ``currency`` (2 for USD, 0 for JPY).

        Less than 0.01 keeps two significant digits.
        """
        if 0 < abs(amount) < _LEAST:
            return self.price(Decimal(f"{amount:.1e}"))
        decimals = "0" * get_currency_precision(currency)
        pattern = f"#,##0.{decimals}" if decimals else "#,##0"
        return str(format_decimal(amount, format=pattern, locale=self.locale))

    def number(self, value: Decimal | int | float) -> str:
        """A plain number with all its decimals, grouped by thousands."""
        return str(format_decimal(value, locale=self.locale, decimal_quantization=False))

    def percent(self, value: Decimal) -> str:
        """A signed percentage with two decimals."""
        return self._per_cent(value, "+#,##0.00;-#,##0.00")

    def share(self, value: Decimal) -> str:
        """A percentage of a whole, up to one decimal."""
        return self._per_cent(value, "#,##0.#")

    def _per_cent(self, value: Decimal, pattern: str) -> str:
        """The sign stands apart in Spanish and close in English (A-7)."""
        return self.say("per_cent", value=format_decimal(value, format=pattern, locale=self.locale))

    def local(self, instant: datetime) -> datetime:
        """The instant in the user's time zone."""
        return instant.astimezone(self.timezone)

    def clock(self, instant: datetime) -> str:
        """Hour and minute in the user's time zone, 24 h."""
        return str(format_time(self.local(instant), "HH:mm", locale=self.locale))

    def day(self, day: date) -> str:
        """Weekday and day, e.g. "lunes 8 de diciembre de 2025"."""
        return str(format_date(day, "full", locale=self.locale)).replace(", ", " ", 1)

    def moment(self, instant: datetime) -> str:
        """Weekday, day and hour in the user's time zone."""
        return f"{self.day(self.local(instant).date())}, {self.clock(instant)}"

    def when(self, instant: datetime) -> str:
        """The moment, shorter when it is of today: the date of today stands once, beside the clock."""
        return f"{self.near_day(self.local(instant).date())}, {self.clock(instant)}"

    def near_day(self, day: date) -> str:
        """The day, "hoy" when it is that."""
        is_today = self.now is not None and day == self.local(self.now).date()
        return self.say("today") if is_today else self.day(day)

    def ago(self, age: timedelta) -> str:
        """How long ago something was, in its largest unit: "hace 45 minutos"."""
        # In full: in short forms "1 m" is a month and "20 min" are minutes.
        text = format_timedelta(
            -age, granularity="minute", add_direction=True, format="long", locale=self.locale
        )
        return str(text)


def region_of(language: str) -> str:
    """The territory in a language tag ("ES" of "es-ES", "419" of "es_419"); empty without one."""
    found = re.fullmatch(r"[a-z]{2,3}(?:[-_][a-z]{4})?[-_]([a-z]{2}|\d{3})", language.strip(), re.IGNORECASE)
    return found[1].upper() if found else ""


def currency_at(region: str, zone: str) -> str:
    """The code of the currency of a territory, else of that of a time zone; empty when there is none."""
    known = (get_territory_currencies(territory) for territory in (region, _territory(zone)) if territory)
    return next((currencies[0] for currencies in known if currencies), "")


@lru_cache(maxsize=1024)
def _locale(language: str, region: str, zone: str) -> Locale:
    for territory in (region, _territory(zone)):
        try:
            return Locale.parse(f"{language}_{territory}")
        except (UnknownLocaleError, ValueError):
            continue
    return Locale.parse(language)


def _territory(zone: str) -> str:
    canonical = get_global("zone_aliases").get(zone, zone)
    return str(get_global("zone_territories").get(canonical, ""))
