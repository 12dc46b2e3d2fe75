"""The names by which an exchange is known."""

CRYPTO = "24/7"
"""Markets that never close."""

FOREX = "FOREX"
"""Currencies: from Sunday to Friday 17:00 in New York."""

WELL_KNOWN = "XNYS, XNAS, XMEX, XMAD, XLON, FOREX, 24/7"
"""What an error names as examples."""

# Beside those that the library knows. Exchanges of one country that share holidays and hours share a calendar.
_ALIASES = {
    "24/5": FOREX,
    "ATHEX": "ASEX",
    "B3": "BVMF",
    "BIVA": "XMEX",
    "BME": "XMAD",
    "BMV": "XMEX",
    "CRYPTO": CRYPTO,
    "FX": FOREX,
    "NSE": "XBOM",
    "SZSE": "XSHG",
    "US_FUTURES": "CMES",
    "XETRA": "XETR",
    "XNSE": "XBOM",
    "XSHE": "XSHG",
}


def canonical(code: str) -> str:
    """``code`` in capitals and without blanks, an alias of ours replaced by what it stands for."""
    name = code.strip().upper()
    return _ALIASES.get(name, name)
