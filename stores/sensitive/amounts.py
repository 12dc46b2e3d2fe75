"""What in a text looks like an amount, a quantity, a price or a result: candidates that their cues decide on."""

import re
from collections.abc import Iterator
from functools import cache

from recuerdo.stores.sensitive.vocabulary import Candidate, words

_LEAST_DIGITS = 3
_CENTS = re.compile(r"[.,]\d{1,2}$")
# A bare number that may be a year is taken for one.
_YEAR = re.compile(r"(?:19[5-9]|20[0-4])\d")
# A multiplier without its number, as after figures.
_NO_AMOUNT = re.compile(
    r"mil millones|^(?:a |an )?(?:millon(?:es)?|million|thousand|hundred|grand|k|lucas|palos)$"
)
_LOOSE_END = re.compile(r"(?: (?:y|and|an?|una?))+$")
_PRICE_REACH = 40
_PRICE_BEFORE = re.compile(
    r"(?<!\w)(?:a|at|@|por|for|from|desde|en|in at|paying|pague|pagando|costo|precio(?: de)?)"
    r"(?: (?:un|an?|precio|promedio|medio|average|price|cost|de|of|unos|about|like|como|around))*[ :]{0,2}$|@ ?$"
)


def amounts(folded_text: str, cased_text: str) -> Iterator[Candidate]:
    """Numbers with or without a currency, in digits and in words, and what they look like.

    ``quantity``: followed by a security; ``money``: with a currency or a multiplier; ``percent``; ``price``: a number
    after "at" or "a"; ``large``: three digits or more; ``small``: other numbers;
    ``worded``: ten or more in words, without a currency.
    """
    for match in _amount().finditer(folded_text):
        yield from _shaped(match, folded_text, cased_text)
    for match in _spoken().finditer(folded_text):
        if not _NO_AMOUNT.search(match.group()):
            yield Candidate(match.start(), match.start() + len(_LOOSE_END.sub("", match.group())), "money")
    for match in _spoken_quantity().finditer(folded_text):
        yield Candidate(*match.span("value"), "quantity")
    for match in _worded().finditer(folded_text):
        yield Candidate(*match.span(), "worded")


def _shaped(match: re.Match[str], folded_text: str, cased_text: str) -> Iterator[Candidate]:
    if _is_beyond_a_user(match):
        return
    start, end = match.span()
    at = _stands_as_a_price(folded_text[max(0, start - _PRICE_REACH) : start])
    if _is_quantity(match, folded_text, cased_text):
        yield Candidate(start, end, "quantity")
    elif match["percent"]:
        yield Candidate(start, end, "percent")
    elif (
        (match["sign"] and not (match["other"] and match["sign"][0].isalpha()))
        or match["unit"]
        or (match["times"] and not match["other"])
    ):
        yield Candidate(start, end, "money", at=at)
    elif not match["other"] and not _YEAR.fullmatch(match["digits"]):
        yield Candidate(start, end, "large" if _is_large(match["digits"]) else "small")
    if at and not match["other"] and not match["percent"]:
        yield Candidate(start, end, "price")


def _stands_as_a_price(before: str) -> bool:
    """Whether a number after ``before`` is a price by the words that lead to it, which end with a letter or an @."""
    last = before.rstrip(" :\n")[-1:]
    return (last == "@" or last.isalpha()) and _PRICE_BEFORE.search(before) is not None


def _is_beyond_a_user(match: re.Match[str]) -> bool:
    """Hundreds of millions and more are a company's or a country's."""
    times = match["times"] or ""
    return "mil millones" in times or ("mill" in times and _is_large(match["digits"]))


def _is_quantity(match: re.Match[str], folded_text: str, cased_text: str) -> bool:
    if match["sign"] or match["unit"] or match["percent"] or "mill" in (match["times"] or ""):
        return False
    end = match.end()
    return bool(_security().match(folded_text, end) or _ticker().match(cased_text, end))


def _is_large(digits: str) -> bool:
    return len(_CENTS.sub("", digits).replace(".", "").replace(",", "")) >= _LEAST_DIGITS


@cache
def _amount() -> re.Pattern[str]:
    sign, times, unit, counted = map(words, ("currency_sign", "multiplier", "currency_word", "counted"))
    digits = r"\d{1,3}(?:[ ']\d{3}){1,4}(?![\d'])(?:[.,]\d{1,2})?|\d{1,15}(?:[.,]\d{1,9}){0,4}"
    return re.compile(
        rf"(?<![\w.:/#'])(?<!\d,)(?<!\d-)(?!401 ?\(?k|403 ?b)"
        rf"(?:[-+] ?|(?:negative|minus|menos) )?(?P<sign>{sign} ?)?[-+]?"
        rf"(?P<digits>{digits})(?![\d/:]|[.,]\d|-\d)"
        rf"(?:(?P<percent> ?(?:%|por ciento|porciento|percent|pct)(?!\w))"
        rf"|(?P<times> ?(?:(?:and a half|y medi[oa]) )?{times}(?!\w))?(?P<unit> ?(?:de |of )?{unit}(?!\w))?"
        rf"(?P<other>[a-z]\w{{0,9}}| ?-?{counted}(?!\w))?)"
    )


@cache
def _spoken() -> re.Pattern[str]:
    number, scale, unit = words("number_word"), words("spoken_scale"), words("currency_word")
    return re.compile(
        rf"(?<!\w)(?<!\d )(?:(?:{number} ){{0,7}}{scale}(?: {number}){{0,5}}(?!\w)(?: (?:de |of )?{unit}(?!\w))?"
        rf"|(?:{number} ){{1,8}}(?:de )?{unit}(?!\w))"
    )


@cache
def _spoken_quantity() -> re.Pattern[str]:
    return re.compile(
        rf"(?<!\w)(?!(?:un|una|an?|y|and|de) )(?P<value>(?:{words('number_word')} ){{0,3}}{words('number_word')})"
        rf"(?= (?:de |of )?{words('securities')}(?!\w))"
    )


@cache
def _worded() -> re.Pattern[str]:
    """A number from ten on in words, of nothing in particular."""
    number = words("number_word")
    return re.compile(
        rf"(?<!\w)(?<!por )(?:{words('large_number_word')})(?: {number}){{0,5}}(?!\w)"
        rf"(?! (?:de )?{words('counted')}(?!\w))"
    )


@cache
def _security() -> re.Pattern[str]:
    kind_of = r"(?: (?!(?:on|en|in|at|de|of|por|for|to|con|with|and|from|per)(?!\w))[a-z]{2,12})?"
    asset = words("asset")
    return re.compile(
        rf" ?(?:{words('securities')}(?!\w)|(?:(?:de|of) )?{asset}(?!\w)|{asset}?{kind_of} {words('securities')}(?!\w))"
    )


@cache
def _ticker() -> re.Pattern[str]:
    return re.compile(
        r" (?:(?:de|of|in|en) )?(?!(?:USD|EUR|MXN|GBP|ARS|COP|CLP|USDT|USDC|JPY|CHF|BRL|PEN|RSI|EMA|SMA|MACD|ATR"
        r"|AM|PM|GMT|EST|UTC|ETFs?|I|A|Y|O|E|K|M)\b)[A-Z]{1,6}(?:[.-][A-Z]{1,2})?(?![\w'])"
    )
