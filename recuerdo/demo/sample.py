"""The sample user CARLOS with his market, dated from a given instant."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from recuerdo.demo import SAMPLE_USER
from recuerdo.nodes.services import Services
from recuerdo.state.tables import read_table
from recuerdo.stores.postgres.platform import Platform, PlatformSample, parse_sample
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences

_QUOTE_AGE = timedelta(seconds=20)
_SIGNAL_AGE = timedelta(minutes=5)
_EVENT_IN = timedelta(days=1)


def sample_at(now: datetime) -> PlatformSample:
    """The platform data as of ``now``: quotes of this minute, the economic event tomorrow."""
    raw = _raw()
    tomorrow = (now.astimezone(ZoneInfo(raw["profiles"][0]["timezone"])) + _EVENT_IN).date()
    dated: dict[str, Any] = {
        "quotes": [{**quote, "as_of": now - _QUOTE_AGE} for quote in raw["quotes"]],
        "signals": [{**signal, "updated_at": now - _SIGNAL_AGE} for signal in raw["signals"]],
        "events": [{**event, "date": tomorrow} for event in raw["events"]],
    }
    return parse_sample({kind: raw[kind] for kind in ("profiles", "positions", "alerts")} | dated)


async def load_sample(
    services: Services, tenant: str, now: datetime, *, without: Collection[str] = ()
) -> bool:
    """Load the sample into a tenant, or bring its dates up to ``now``; preferences only the first time.

    A tenant that has data of its own under the same names is left alone: False. ``without`` names
    preferences that the user has still to state.
    """
    platform = Platform(services.database, tenant)
    sample = sample_at(now)
    known = await platform.profile(SAMPLE_USER)
    foreign = await platform.quotes([quote.symbol for quote in sample.quotes]) if known is None else ()
    if foreign or known not in (None, sample.profiles[0]):
        return False
    await platform.load(sample)
    if known is None:
        await _set_preferences(Preferences(services.database, tenant), now, without)
    return True


async def _set_preferences(preferences: Preferences, now: datetime, without: Collection[str]) -> None:
    for row in _raw()["preferences"]:
        if row["key"] not in without:
            change = PreferenceChange(row["key"], row["value"], row["quote"], None, "es")
            await preferences.set(SAMPLE_USER, change, now)


def _raw() -> dict[str, Any]:
    raw: dict[str, Any] = read_table(__package__, "sample.yaml")
    return raw
