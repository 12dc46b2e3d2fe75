"""When one exchange trades, as plain intervals."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Sessions:
    """Trading intervals of one exchange, oldest first, in UTC: [opens[i], closes[i])."""

    zone: ZoneInfo
    opens: tuple[datetime, ...]
    closes: tuple[datetime, ...]
