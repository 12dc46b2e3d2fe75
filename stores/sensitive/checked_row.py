"""Check digits of the parts of a row of digits: those of cards (Luhn) and of Mexican bank accounts (CLABE)."""

from collections.abc import Iterable, Sequence
from itertools import accumulate


def _weighed(counts: Iterable[int]) -> bytes:
    """A table for ``bytes.translate``: what each digit counts."""
    return bytes.maketrans(b"0123456789", bytes(counts))


CLABE_SIZE = 18
# What a digit counts by its place: CLABE's weights begin with the first digit, Luhn's end with the check digit.
_CLABE_WEIGHTS = tuple(_weighed(digit * weight for digit in range(10)) for weight in (3, 7, 1))
_LUHN_WEIGHTS = (_weighed((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)), _weighed(range(10)))


class CheckedRow:
    """A row of ASCII digits, any part of which is checked in a few steps, however many parts are tried.

    Luhn and CLABE both say that the digits, each by the weight of its place, add up to a multiple of ten. So the sums
    up to every place are kept, once for each place of the row that the weights may begin at.
    """

    def __init__(self, digits: str) -> None:
        """Add up the row."""
        self.digits = digits
        self._luhn = _sums(digits.encode(), _LUHN_WEIGHTS)
        self._clabe = _sums(digits.encode(), _CLABE_WEIGHTS)

    def passes_luhn(self, start: int, end: int) -> bool:
        """Whether the last digit of a part is the check digit of Luhn, as on cards."""
        sums = self._luhn[end % len(_LUHN_WEIGHTS)]
        return (sums[end] - sums[start]) % 10 == 0

    def is_clabe(self, start: int) -> bool:
        """Whether the 18 digits from ``start`` on end with the check digit of a Mexican bank account."""
        sums = self._clabe[start % len(_CLABE_WEIGHTS)]
        return (sums[start + CLABE_SIZE] - sums[start]) % 10 == 0


def _sums(digits: bytes, weights: Sequence[bytes]) -> list[list[int]]:
    """For each place that the weights may begin at: the sums of the first 0, 1, 2 ... digits by their weights."""
    period = len(weights)
    sums = []
    for first in range(period):
        weighed = bytearray(len(digits))
        for place, weight in enumerate(weights, first):
            every = slice(place % period, None, period)
            weighed[every] = digits[every].translate(weight)
        sums.append(list(accumulate(weighed, initial=0)))
    return sums
