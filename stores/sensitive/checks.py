"""Checks of what a pattern found: check digits, dates, and words that are no secret."""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise

from stdnum import iban
from stdnum.ar import cbu, cuit
from stdnum.br import cnpj, cpf
from stdnum.cl import rut
from stdnum.co import nit
from stdnum.es import ccc, cif, nie, nif
from stdnum.mx import rfc
from stdnum.us import ein, ssn

Check = Callable[[str], bool]

_DATE = re.compile(
    r"(?:19|20)\d\d[-/. ]\d\d?[-/. ]\d\d?|\d\d?[-/. ]\d\d?[-/. ](?:19|20)\d\d|(?:19|20)\d\d ?- ?(?:19|20)\d\d"
)
_WITH_UNIT = re.compile(r"[-+$€£#]?\d[\d.,:/-]*(?:[a-z]{1,4}|%)?|[$€£#@]\w+", re.IGNORECASE)
# Things that have a sign or a digit in their name: S&P500, 2FA, M&A, covid-19, iOS18.
_NAMED = re.compile(
    r"s&p\w*|[a-z]&[a-z]|[a-z]{1,2}\d|\dfa|ios\d*|v\d[\d.]*|covid\S*|sp500|nasdaq\d*|(?:[a-z]{2,8}_){1,3}[a-z]{2,8}|web\d|top\d+|fy\d+"
    r"|w-?\d\w*|401\(?k\)?",
    re.IGNORECASE,
)
_LEAST_CHANGES = 4


def digits_of(text: str) -> str:
    """The decimal digits of ``text``."""
    return "".join(filter(str.isdigit, text))


def is_no_date(text: str) -> bool:
    """Not a calendar date, which labelled numbers may look like."""
    return _DATE.fullmatch(text.strip()) is None


def is_tax_id(text: str) -> bool:
    """A tax number of Mexico, Spain, the United States, Argentina, Chile, Colombia or Brazil with a right check."""
    numbers = (rfc, nif, nie, cif, ssn, ein, cuit, rut, nit, cpf, cnpj)
    return any(number.is_valid(text) for number in numbers)


def is_iban(text: str) -> bool:
    """An IBAN with a right checksum."""
    return bool(iban.is_valid(text))


def is_bank_account(text: str) -> bool:
    """An Argentine CBU or a Spanish CCC with right check digits."""
    return any(number.is_valid(digits_of(text)) for number in (cbu, ccc))


def is_code(text: str) -> bool:
    """A code by its label: with a digit, and no price or percentage."""
    return any(map(str.isdigit, text)) and not text.startswith(("$", "€")) and "%" not in text


def is_password(text: str) -> bool:
    """A word as only a password is: letters with a digit or a sign inside, no number with its unit, no name."""
    if _WITH_UNIT.fullmatch(text) or not is_no_date(text) or "://" in text:
        return False
    return any(map(str.isalpha, text)) and _NAMED.fullmatch(text) is None


def is_random(text: str) -> bool:
    """As no word and no name of a thing: capitals, small letters and digits mixed again and again."""
    kinds = ["A" if char.isupper() else "a" if char.isalpha() else "0" for char in text if char.isalnum()]
    changes = sum(one != other for one, other in pairwise(kinds))
    return "0" in kinds and len(set(kinds)) > 1 and changes * _LEAST_CHANGES >= len(kinds)


CHECKS: Mapping[str, Check] = {
    check.__name__: check for check in (is_bank_account, is_code, is_password, is_random, is_tax_id)
}
