"""What one turn's context is made of, as it was loaded; blocks and the context document are views of it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from recuerdo.nodes.build_context.asked import AskedKind
from recuerdo.nodes.build_context.figures import Holding, holdings
from recuerdo.nodes.build_context.intent import IntentName
from recuerdo.nodes.build_context.phrasing import Phrasing, currency_at, region_of
from recuerdo.nodes.receive.language import spoken_language
from recuerdo.state.key_events import KeyEvent
from recuerdo.state.turn import BuildStep, ProviderCall, TopicReading
from recuerdo.stores.postgres.memories import StoredMemory
from recuerdo.stores.postgres.platform import (
    Alert,
    CourseProgress,
    EconomicEvent,
    Position,
    Profile,
    Quote,
    Signal,
)
from recuerdo.stores.sources.calendar import MarketStatus

DEFAULT_TIMEZONE = "UTC"
DEFAULT_MARKET = "XNYS"
NO_TOPIC = TopicReading(topic=None, changed=False, returned_to=False, reason=None, similarity=None)


@dataclass
class Gathered:
    """The loaded data of one turn. Lists are empty where there is nothing or a source did not answer."""

    now: datetime
    language: str
    intent: IntentName
    intent_confidence: float
    plan_language: str = "es"
    """For a user whose own language is neither Spanish nor English."""
    text: str = ""
    asked: frozenset[AskedKind] = frozenset()
    profile: Profile | None = None
    preferences: dict[str, Any] = field(default_factory=dict)
    started_at: datetime | None = None
    symbols: tuple[str, ...] = ()
    unknown_symbols: tuple[str, ...] = ()
    resolved_by: str = "none"
    topic: TopicReading = field(default_factory=lambda: NO_TOPIC.copy())
    frequent: tuple[str, ...] = ()
    quotes: dict[str, Quote] = field(default_factory=dict)
    positions: list[Position] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    signals_allowed: bool = False
    education: list[CourseProgress] = field(default_factory=list)
    events: list[EconomicEvent] = field(default_factory=list)
    market: MarketStatus | None = None
    markets: dict[str, MarketStatus] = field(default_factory=dict)
    memories: list[StoredMemory] = field(default_factory=list)
    key_events: list[KeyEvent] = field(default_factory=list)
    trace: list[BuildStep] = field(default_factory=list)
    providers: list[ProviderCall] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    index_away: str = ""
    """Why recall did without the vector index: nothing is missing, so the model need not know."""

    @property
    def phrasing(self) -> Phrasing:
        """How facts of this turn are written for this user."""
        return Phrasing(self.language, self.timezone, self.region, self.now)

    @property
    def lasting_language(self) -> str:
        """The language of what changes rarely: the user's own, so that one message in another language does
        not change the front of the prompt (C-22)."""
        if self.wanted_language:
            return self.wanted_language
        if self.profile is None:
            return self.language
        return spoken_language(self.profile.language) or self.plan_language

    @property
    def wanted_language(self) -> str:
        """The language that the user asked to be answered in, whatever he writes in (RF-9); empty: he did not."""
        preference = self.preferences.get("response_language")
        return (spoken_language(str(preference.value)) or "") if preference else ""

    @property
    def lasting_phrasing(self) -> Phrasing:
        """How facts that change rarely are written for this user."""
        return Phrasing(self.lasting_language, self.timezone, self.region)

    @property
    def region(self) -> str:
        """The territory that the profile's language names; empty without one (A-7)."""
        return region_of(self.profile.language) if self.profile else ""

    @property
    def timezone(self) -> ZoneInfo:
        """The user's time zone, UTC without a profile."""
        return ZoneInfo(self.profile.timezone if self.profile else DEFAULT_TIMEZONE)

    @property
    def home_currency(self) -> str:
        """The code of the currency where the user lives, by region or time zone; empty without a profile (A-7)."""
        return currency_at(self.region, self.profile.timezone) if self.profile else ""

    @property
    def main_market(self) -> str:
        """Calendar code of the user's main market (C-35)."""
        return (self.profile.main_market if self.profile else None) or DEFAULT_MARKET

    @property
    def held(self) -> tuple[str, ...]:
        """Symbols of open positions."""
        return tuple(dict.fromkeys(position.symbol for position in self.positions))

    @property
    def concerns_holding(self) -> bool:
        """Whether the turn is about something the user holds (RF-40)."""
        return self.resolved_by == "portfolio" or bool(set(self.symbols) & set(self.held))

    @property
    def holdings(self) -> list[Holding]:
        """The open positions with their figures."""
        return holdings(self.positions, self.quotes)
