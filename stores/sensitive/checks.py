"""Checks of what a pattern found: check digits, dates, and words that are no secret."""

import re
from collections.abc import Callable, Mapping

from stdnum import iban, luhn
from stdnum.ar import cuit
from stdnum.br import cnpj, cpf
from stdnum.cl import rut
from stdnum.es import cif, nie, nif
from stdnum.mx import rfc
from stdnum.us import ein, ssn

Check = Callable[[str], bool]

_DATE = re.compile(r"(?:19|20)\d\d[-/. ]\d\d?[-/. ]\d\d?|\d\d?[-/. ]\d\d?[-/. ](?:19|20)\d\d")
_CARD_START = re.compile(r"[2-6]")
_CLABE_WEIGHTS = (3, 7, 1)


def digits_of(text: str) -> str:
    """The decimal digits of ``text``."""
    return "".join(filter(str.isdigit, text))


def is_card(digits: str) -> bool:
    """13 to 19 digits of a card's issuer range that pass Luhn."""
    return 13 <= len(digits) <= 19 and _CARD_START.match(digits) is not None and bool(luhn.is_valid(digits))


def is_clabe(digits: str) -> bool:
    """18 digits whose last is the Mexican bank account's check digit."""
    if len(digits) != 18:
        return False
    total = sum(int(digit) * _CLABE_WEIGHTS[place % 3] % 10 for place, digit in enumerate(digits[:17]))
    return (10 - total % 10) % 10 == int(digits[17])


def is_no_date(text: str) -> bool:
    """Not a calendar date, which labelled numbers may look like."""
    return _DATE.fullmatch(text.strip()) is None


def is_tax_id(text: str) -> bool:
    """A tax number of Mexico, Spain, the United States, Argentina, Chile or Brazil with a right check."""
    numbers = (rfc, nif, nie, cif, ssn, ein, cuit, rut, cpf, cnpj)
    return any(number.is_valid(text) for number in numbers)


def is_iban(text: str) -> bool:
    """An IBAN with a right checksum."""
    return bool(iban.is_valid(text))


def is_account(text: str) -> bool:
    """An account number by its label: six digits or more, and no date."""
    return len(digits_of(text)) >= 6 and is_no_date(text)


def is_code(text: str) -> bool:
    """A code by its label: with a digit, and no price or percentage. Words after "clave" have no digits."""
    return any(map(str.isdigit, text)) and not text.startswith(("$", "€")) and "%" not in text


CHECKS: Mapping[str, Check] = {
    check.__name__: check for check in (is_account, is_code, is_no_date, is_tax_id)
}
