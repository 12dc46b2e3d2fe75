"""One character in, one character out: text made comparable without moving its offsets."""

import unicodedata
from typing import Final


def _plain_character(char: str) -> str:
    category = unicodedata.category(char)
    if char == "\n":
        return char
    # Zero-width characters stand between digits only to hide them.
    if char.isspace() or category in ("Cf", "Cc"):
        return " "
    if category == "Nd":
        return str(unicodedata.digit(char))
    if category == "Pd" or char == "\N{MINUS SIGN}":
        return "-"
    if char in "’‘ʼ´`":
        return "'"
    compatible = unicodedata.normalize("NFKC", char)
    return compatible if len(compatible) == 1 else char


class _Plain(dict[int, str]):
    """Compatible forms (full-width, other digits) as plain characters; one kind of space, quote and dash."""

    def __missing__(self, code: int) -> str:
        self[code] = _plain_character(chr(code))
        return self[code]


class _Unaccented(dict[int, str]):
    """Letters without accents."""

    def __missing__(self, code: int) -> str:
        self[code] = unicodedata.normalize("NFKD", chr(code))[0]
        return self[code]


class _Folded(dict[int, str]):
    """Lower case without accents."""

    def __missing__(self, code: int) -> str:
        self[code] = _UNACCENTED[code].lower()[0]
        return self[code]


_PLAIN: Final = _Plain()
_UNACCENTED: Final = _Unaccented()
_FOLDED: Final = _Folded()


def plain(text: str) -> str:
    """``text`` in NFC with compatible characters made plain; case and accents stay.

    Offsets are those of the text's NFC form.
    """
    return unicodedata.normalize("NFC", text).translate(_PLAIN)


def unaccented(plain_text: str) -> str:
    """A plain text without accents, its case kept. Same length."""
    return plain_text.translate(_UNACCENTED)


def folded(plain_text: str) -> str:
    """A plain text in lower case, without accents (ñ becomes n). Same length."""
    return plain_text.translate(_FOLDED)


def comparable(plain_text: str) -> str:
    """A plain text folded, with dashes as spaces: for names and phrases. Same length."""
    return folded(plain_text).replace("-", " ")
