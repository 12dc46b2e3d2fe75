"""The fixture CARLOS of the requirements, the clock, and agents on one database and data folder."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import recuerdo
from recuerdo.agent import Agent
from recuerdo.opening import AgentOpening
from recuerdo.stores.postgres.platform import Platform, PlatformSample, parse_sample
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences

TENANT = "t1"
CARLOS = "user-123"
CONVERSATION = "conv-456"
FRIDAY = "2025-12-05T10:30:00-06:00"
SATURDAY = "2025-12-06T11:00:00-06:00"

AS_OF = "2025-12-05T10:29:30-06:00"
AAPL = {
    "symbol": "AAPL",
    "price": "185.50",
    "change_percent": "1.20",
    "volume": "52340000",
    "open": "183.10",
    "high": "186.20",
    "low": "182.95",
    "previous_close": "183.30",
    "currency": "USD",
    "as_of": AS_OF,
}
TSLA = {
    "symbol": "TSLA",
    "price": "245.00",
    "change_percent": "-0.80",
    "volume": "88100000",
    "currency": "USD",
    "as_of": AS_OF,
}
NVDA = {"symbol": "NVDA", "price": "140.25", "currency": "USD", "as_of": AS_OF}
AAPL_POSITION = {
    "user": CARLOS,
    "symbol": "AAPL",
    "quantity": "50",
    "avg_price": "175.00",
    "currency": "USD",
}
TSLA_POSITION = {
    "user": CARLOS,
    "symbol": "TSLA",
    "quantity": "20",
    "avg_price": "250.00",
    "currency": "USD",
}
PROFILE = {
    "user": CARLOS,
    "name": "Carlos",
    "subscription": "premium",
    "risk_profile": "moderate",
    "experience": "intermediate",
    "language": "es",
    "timezone": "America/Mexico_City",
}
SAMPLE: dict[str, Any] = {
    "profiles": [PROFILE],
    "quotes": [AAPL, TSLA, NVDA],
    "positions": [AAPL_POSITION, TSLA_POSITION],
    "alerts": [{"user": CARLOS, "id": "alert-1", "symbol": "TSLA", "condition": "<=", "price": "240"}],
    "signals": [
        {
            "symbol": "AAPL",
            "prediction": "bullish",
            "confidence": "0.72",
            "updated_at": "2025-12-05T10:25:00-06:00",
        }
    ],
    "events": [{"event": "Fed Minutes", "date": "2025-12-06", "impact": "high"}],
}
PREFERENCES: dict[str, Any] = {
    "show_disclaimers": True,
    "preferred_timeframe": "4h",
    "favorite_indicators": ["RSI", "MACD"],
    "notification_style": "detailed",
}


class SettableClock:
    """The agent's clock: stands still until a test moves it."""

    def __init__(self, at: str = FRIDAY) -> None:
        self.now = datetime.fromisoformat(at)

    def __call__(self) -> datetime:
        return self.now

    def set(self, at: str) -> None:
        self.now = datetime.fromisoformat(at)

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@dataclass
class House:
    """What outlives an agent: the database, the data folder, the clock."""

    database_url: str
    data: Path
    clock: SettableClock = field(default_factory=SettableClock)

    def open(self, **parts: Any) -> AgentOpening:
        """An agent of tenant t1; without ``model`` and without endpoint it is the offline responder."""
        values = {"_env_file": None, "data": self.data, "database_url": self.database_url}
        settings = recuerdo.Settings(**{**values, **parts.pop("settings", {})})
        return recuerdo.open_agent(settings, **{"tenant": TENANT, "clock": self.clock, **parts})


def sample(**changes: Any) -> PlatformSample:
    """Platform data of CARLOS, with other lists in place of some of them."""
    return parse_sample({**SAMPLE, **changes})


async def seed(
    agent: Agent, data: PlatformSample | None = None, preferences: dict[str, Any] | None = None
) -> None:
    """Load platform data and preferences, as said a month ago."""
    database = agent.services.database
    await Platform(database, TENANT).load(data or sample())
    said = datetime.fromisoformat("2025-11-05T09:00:00-06:00")
    for key, value in (PREFERENCES if preferences is None else preferences).items():
        change = PreferenceChange(key, value, f"{key}: {value}", None, "es")
        await Preferences(database, TENANT).set(CARLOS, change, said)


def prompt(request: Any) -> str:
    """Everything of a request that is neither history nor the user's own words (RF-50)."""
    return "\n".join(str(m.text) for m in request["messages"] if m.type == "system")


def dialogue(request: Any) -> list[str]:
    """The user's and the assistant's texts of a request, in order."""
    return [str(m.text) for m in request["messages"] if m.type in ("human", "ai")]
