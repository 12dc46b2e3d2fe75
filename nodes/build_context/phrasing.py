"""How facts are written for the user: money, numbers, dates and fences, in his language and locale (RF-20)."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from zoneinfo import ZoneInfo

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.dates import format_date, format_time
from babel.numbers import format_decimal

from recuerdo.state.blocks import CountTokens
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)

_LONGEST_TOKEN = 20
"""Characters that no token of a plain text is longer than, so that an endless text is cut in no time."""

_TAG = re.compile(r"<(\s*/?\s*[a-z_]+\s*)>", re.IGNORECASE)


def as_data(text: str) -> str:
    """Text from outside as one line of data: it cannot open or close a fence (design section 4)."""
    return _TAG.sub(r"‹\1›", " ".join(text.split()))


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
    """A labelled block of facts, one per line; empty when there are none."""
    if not lines:
        return ""
    return "\n".join([f"<{name}>", *(f"- {line}" for line in lines), f"</{name}>"])


@dataclass(frozen=True)
class Phrasing:
    """Writes facts in one language, one locale and one time zone."""

    language: str
    timezone: ZoneInfo

    @cached_property
    def locale(self) -> Locale:
        """Language with the territory of the time zone: Spanish in Mexico City writes 185.50, in Madrid 185,50."""
        territory = get_global("zone_territories").get(self.timezone.key, "")
        try:
            return Locale.parse(f"{self.language}_{territory}")
        except (UnknownLocaleError, ValueError):
            return Locale.parse(self.language)

    def say(self, key: str, /, **values: object) -> str:
        """The sentence ``key`` in the user's language."""
        return sentences(key, **values).in_language(self.language)

    def money(self, amount: Decimal) -> str:
        """An amount with at least two decimals, without currency."""
        return str(format_decimal(amount, format="#,##0.00####", locale=self.locale))

    def number(self, value: Decimal | int | float) -> str:
        """A plain number, grouped by thousands."""
        return str(format_decimal(value, locale=self.locale))

    def percent(self, value: Decimal) -> str:
        """A signed percentage with two decimals."""
        return str(format_decimal(value, format="+#,##0.00;-#,##0.00", locale=self.locale)) + " %"

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
        local = self.local(instant)
        return f"{self.day(local.date())}, {self.clock(instant)}"
