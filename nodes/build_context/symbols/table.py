"""The committed table of instruments, and pairs composed from it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

Kind = Literal["stock", "etf", "crypto", "fx"]
TickerUse = Literal["any_case", "capitals", "cue", "stock_word"]


@dataclass(frozen=True)
class Instrument:
    """One tradable instrument. ``exchange`` is a trading calendar's code: a MIC, "24/7" or "FOREX"."""

    symbol: str
    name: str
    exchange: str
    kind: Kind
    currency: str
    ticker: TickerUse = field(default="any_case", repr=False)
    aliases: tuple[str, ...] = field(default=(), repr=False)
    word_aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, hash=False)
    codes: tuple[str, ...] = field(default=(), repr=False)
    adr: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Table:
    """Every instrument by its symbol and other spellings, and what pairs are composed from.

    ``abroad`` gives the symbol of a share's listing in the United States, ``home`` that at home by the one abroad.
    """

    by_code: Mapping[str, Instrument]
    currencies: frozenset[str]
    crypto_names: Mapping[str, str]
    crypto_quotes: tuple[str, ...]
    abroad: Mapping[str, str]
    home: Mapping[str, str]

    @property
    def instruments(self) -> list[Instrument]:
        """Each instrument once."""
        return list({entry.symbol: entry for entry in self.by_code.values()}.values())

    def pair(self, base: str, quote: str) -> Instrument | None:
        """The crypto or forex pair of two codes in capitals, None when it is no pair of ours."""
        if known := self.by_code.get(base + quote):
            return known
        if base == quote:
            return None
        if base in self.crypto_names and quote in self.crypto_quotes:
            return Instrument(base + quote, f"{self.crypto_names[base]} / {quote}", "24/7", "crypto", quote)
        if base in self.currencies and quote in self.currencies:
            return Instrument(base + quote, f"{base} / {quote}", "FOREX", "fx", quote)
        return None

    def joined_pair(self, code: str) -> Instrument | None:
        """The pair that is written in one word, such as BTCUSDT or GBPJPY."""
        pairs = (
            self.pair(code[:split], code[split:]) for split in (len(code) - 4, len(code) - 3) if split >= 2
        )
        return next((pair for pair in pairs if pair), None)


def instrument(symbol: str) -> Instrument | None:
    """The instrument of a symbol in any common spelling ("AAPL", "brk-b", "BTC", "eur/usd"), None if unknown."""
    code = symbol.strip().upper()
    return known_code(code) or known_code(code.replace("/", "").replace("-", ""))


@lru_cache(maxsize=8192)
def known_code(code: str) -> Instrument | None:
    """The instrument of a code in capitals; a class after a dash is that after a dot (BRK-B, BRK.B)."""
    table = load_table()
    return table.by_code.get(code) or table.by_code.get(code.replace("-", ".")) or table.joined_pair(code)


@cache
def load_table() -> Table:
    """Read the table once."""
    raw = json.loads((files(__package__) / "table.json").read_text(encoding="utf-8"))
    entries = [_entry(row) for row in raw["instruments"]]
    return Table(
        by_code={code: entry for entry in entries for code in (entry.symbol, *entry.codes)},
        currencies=frozenset(raw["currencies"]),
        crypto_names={
            entry.symbol.removesuffix("USD"): entry.name for entry in entries if entry.kind == "crypto"
        },
        crypto_quotes=tuple(raw["crypto_quotes"]),
        abroad={entry.symbol: entry.adr for entry in entries if entry.adr},
        home={entry.adr: entry.symbol for entry in entries if entry.adr},
    )


def _entry(row: dict[str, Any]) -> Instrument:
    return Instrument(
        symbol=row["symbol"],
        name=row["name"],
        exchange=row["exchange"],
        kind=row["kind"],
        currency=row["currency"],
        ticker=row["ticker"],
        aliases=tuple(row["aliases"]),
        word_aliases={name: tuple(languages) for name, languages in row.get("word_aliases", {}).items()},
        codes=tuple(row.get("codes", ())),
        adr=row.get("adr"),
    )
