"""What every live source of quotes shares: its boundary, its errors, its settings."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from importlib.util import find_spec
from threading import Lock
from typing import Any

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from recuerdo.state.errors import RecuerdoError, SettingsError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.sources.rows import Quote

logger = logging.getLogger(__name__)
sentences = load_sentences(__package__)

Ask = Callable[[Sequence[str]], Mapping[str, Mapping[str, Any] | None]]
"""The boundary to a service: given its own spelling of some symbols, its answer by that spelling.

It blocks, and is called off the event loop. What the service does not know is missing or None; it raises
RecuerdoError. A test passes recorded answers here, without the service's library.
"""

TIMEOUT_SECONDS = 5.0
"""How long a service may take for one answer."""


class LiveError(RecuerdoError):
    """A live service does not answer, or refused."""


class LiveSettings(BaseSettings):
    """Keys and choices of the live services, from the environment and `.env`; secrets are never printed."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", env_ignore_empty=True, extra="ignore", frozen=True
    )

    alpaca_key: SecretStr | None = Field(default=None, validation_alias="ALPACA_API_KEY_ID")
    alpaca_secret: SecretStr | None = Field(default=None, validation_alias="ALPACA_API_SECRET_KEY")
    crypto_exchange: str = Field(default="kraken", validation_alias="RECUERDO_CRYPTO_EXCHANGE")


class Library(ABC):
    """A service's library as the boundary: its client opened at the first question, one question at a time.

    An error of the library becomes one of ours: its own text may hold keys, or an address with what was asked.
    """

    def __init__(self) -> None:
        self._opened: Any = None
        # The libraries' sessions and counts of requests are not made for several threads.
        self._lock = Lock()

    def __call__(self, names: Sequence[str]) -> Mapping[str, Mapping[str, Any] | None]:
        """What the service answers; see ``Ask``."""
        with self._lock:
            try:
                if self._opened is None:
                    self._opened = self.open()
                return self.ask(self._opened, names)
            except RecuerdoError:
                raise
            except Exception as error:
                raise self.in_our_words(error) from None

    @abstractmethod
    def open(self) -> Any:
        """The library's client."""

    @abstractmethod
    def ask(self, client: Any, names: Sequence[str]) -> Mapping[str, Mapping[str, Any] | None]:
        """One question to the service."""

    @abstractmethod
    def in_our_words(self, error: Exception) -> RecuerdoError:
        """What to tell of an error of the library."""


def require_extra(module: str, extra: str, service: str) -> None:
    """Raises SettingsError that says what to install if ``module`` is not there. Does not import it."""
    if find_spec(module) is None:
        raise SettingsError(sentences("extra_missing", service=service, extra=extra))


async def answers(ask: Ask, names: Iterable[str]) -> Mapping[str, Mapping[str, Any] | None]:
    """What the service answers, asked in a thread; nothing is asked for no names."""
    wanted = sorted(set(names))
    return await asyncio.to_thread(ask, wanted) if wanted else {}


def quote_or_none(service: str, **fields: Any) -> Quote | None:
    """The quote, or None where the service gave no price or nonsense: one symbol does not cost the others."""
    if fields["price"] is None:
        return None
    try:
        return Quote(**fields)
    except ValidationError as error:
        places = {str(place) for problem in error.errors() for place in problem["loc"]}
        logger.warning("%s: unusable quote of %s: %s", service, fields["symbol"], ", ".join(sorted(places)))
        return None


def decimal(value: Any) -> Decimal | None:
    """A number as the service wrote it, exact; None for what is no finite number."""
    if value is None or isinstance(value, bool):
        return None
    with suppress(InvalidOperation, ValueError):
        number = Decimal(str(value))
        return number if number.is_finite() else None
    return None
