"""Several sources of quotes as one, for users who hold stocks and crypto."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from recuerdo.stores.sources.live.crypto import crypto_quotes
from recuerdo.stores.sources.live.service import LiveSettings
from recuerdo.stores.sources.live.us_stocks import us_stock_quotes
from recuerdo.stores.sources.registry import Source, SourceQuery
from recuerdo.stores.sources.rows import Quote

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CombinedQuotes:
    """The source ``quotes`` that asks each of ``parts`` side by side; the first that knows a symbol counts.

    A part that fails costs its own symbols. Raises its error when nobody gave anything.
    """

    parts: Sequence[Source]
    name: str = field(default="quotes", init=False)

    async def fetch(self, query: SourceQuery) -> list[Quote]:
        """The quotes of those symbols that any part knows."""
        given = await asyncio.gather(*(part.fetch(query) for part in self.parts), return_exceptions=True)
        failures = [answer for answer in given if isinstance(answer, BaseException)]
        found: dict[str, Quote] = {}
        for answer in given:
            if not isinstance(answer, BaseException):
                found = {quote.symbol: quote for quote in answer} | found
        if failures and not found:
            raise failures[0]
        for failure in failures:
            logger.warning("live quotes: a part failed: %s", type(failure).__name__)
        return list(found.values())


def live_quotes(settings: LiveSettings | None = None) -> CombinedQuotes:
    """US stocks and crypto as the settings say. Raises SettingsError if an extra or a key is missing."""
    found = settings or LiveSettings()
    return CombinedQuotes((us_stock_quotes(found), crypto_quotes(found)))
