"""What in a text may be a password, a key or an answer to a secret question: candidates, by their form and place."""

import re
from collections.abc import Iterator
from functools import cache

from stdnum import isin

from recuerdo.stores.sensitive.checks import is_password
from recuerdo.stores.sensitive.vocabulary import Candidate, words

# One run of characters without spaces that no word is made of: a digit or a sign among letters.
_ODD = re.compile(
    r"(?<![^\s\"'“«:=(,/|>\[])(?=[^\s\"'“«]{0,40}?[\d!@#$%^&*_+~.\-])(?=[^\s]{0,40}?[A-Za-z])[^\s\"'”»(),;|\[\]]{4,200}"
)
_OUTER, _SHORTEST = ".:?!/", 4
_PLAIN_WORD = re.compile(
    r"[A-Za-z]+(?:[.:/'&+-][A-Za-z]+)*|[A-Za-z]{1,4}[.=-]?\d{1,3}(?:[.,]\d{1,4})?|\d[\d.,:/-]*[A-Za-z]{1,5}|\S+@\S+\.\w+|[\d.,:x-]+"
)
_LINK = re.compile(r"https?:|www\.", re.IGNORECASE)
_JOINED_CAPITALS = re.compile(r"[A-Z][a-z]+(?:&[A-Z][a-z]+)(?:\.[A-Z][a-z]+){1,4}")
# Names of things that look random and open nothing: UUID, ULID, hexadecimal hashes.
_NAME = re.compile(
    r"(?i:[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|(?:0x)?(?=[0-9]{0,60}[a-f])[0-9a-f]{7,128})|[0-7][0-9A-HJKMNP-TV-Z]{25}"
)
_PLAIN_FORM = re.compile(
    r"(?:19|20)\d\d-\d\d-\d\d[Tt]\d\d(?::\d\d)?|(?:0?[1-9]|1[0-2])/20\d\d$|(?:\d{1,3}\.){3}\d{1,3}$"
)
_WORD_BEFORE, _WORD_AFTER, _LONGEST_NAME = re.compile(r"[\w-]{1,130}$"), re.compile(r"[\w-]{1,130}"), 130
_SECRET_REACH = 60


def odd_words(cased_text: str) -> Iterator[Candidate]:
    """Words as only a password or a key is, in the text without accents."""
    for match in _ODD.finditer(cased_text):
        value = match.group().rstrip(_OUTER)
        if len(value) >= _SHORTEST and _is_odd(value):
            yield Candidate(match.start(), match.start() + len(value), "odd")


def secret_phrases(folded_text: str) -> Iterator[Candidate]:
    """Words after the name of a secret, at once or after the first mark that follows it; and what is spelled out."""
    for pattern in (_phrase_at_once(), _phrase_after_mark(), _whole_phrase(), _spelled()):
        for match in pattern.finditer(folded_text):
            yield Candidate(*match.span("value"), "phrase")


def names_a_thing(text: str, start: int, end: int) -> bool:
    """Whether a part of a text belongs to a UUID, a ULID or a hash: no secret without a word that says so."""
    return _NAME.fullmatch(_whole_word(text, start, end)) is not None


def is_no_secret(text: str) -> bool:
    """A security's ISIN, a month or a moment in time, a network address: wherever it stands."""
    return _PLAIN_FORM.match(text) is not None or bool(isin.is_valid(text))


def says_secret(folded_text: str, start: int, end: int) -> bool:
    """Whether a word for a credential stands near."""
    return _credential().search(folded_text, max(0, start - _SECRET_REACH), end + _SECRET_REACH) is not None


def _whole_word(text: str, start: int, end: int) -> str:
    before = _WORD_BEFORE.search(text, max(0, start - _LONGEST_NAME), start)
    after = _WORD_AFTER.match(text, end, end + _LONGEST_NAME)
    return text[before.start() if before else start : after.end() if after else end]


def _is_odd(value: str) -> bool:
    if _JOINED_CAPITALS.fullmatch(value):
        return True
    return _PLAIN_WORD.fullmatch(value) is None and _LINK.match(value) is None and is_password(value)


@cache
def _credential() -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9])(?:{words('credential_word')})(?![a-z0-9])")


@cache
def _phrase_at_once() -> re.Pattern[str]:
    """The words right after the name of a secret, to the end of the clause."""
    return re.compile(rf"{_secret_name()}[ ,]{{1,2}}(?!{words('phrase_mark')}(?!\w)){_value()}")


@cache
def _phrase_after_mark() -> re.Pattern[str]:
    """The words after a mark ("es", ":", a quote) that follows the name of a secret."""
    mark = rf"(?:(?<!\w){words('phrase_mark')}(?: {words('phrase_mark')})?(?!\w)|[:=>(]|['\"“«])"
    return re.compile(rf"{_secret_name()}[^\n;]{{0,60}}?{mark}[ \"'“«]{{0,2}}{_value()}")


@cache
def _whole_phrase() -> re.Pattern[str]:
    """A phrase of several words, whichever they are, up to the next sign."""
    word = "[a-z0-9']{1,20}"
    return re.compile(
        rf"(?<!\w){words('phrase_name')}(?: (?:is|es|era|was))?:? [\"'“«]?"
        rf"(?P<value>{word}(?: {word}){{1,6}}(?=[.,;!?\"'”»)\n]|$))"
    )


@cache
def _spelled() -> re.Pattern[str]:
    """Five letters or signs and more by their names; a single letter or figure is among them."""
    name = words("letter_name")
    return re.compile(rf"(?<!\w)(?P<value>{name}(?: {name}){{4,40}})(?!\w)")


def _secret_name() -> str:
    return rf"(?<![a-z0-9])(?:{words('secret_name')})(?!\w)"


def _value() -> str:
    word = r"[^\s.,;:?!\"”»()]{1,40}(?:[.!?][^\s.,;:?!\"”»()]{1,30})?"
    return rf"(?P<value>{word}(?: (?!(?:{words('goes_on')})(?!\w)){word}){{0,12}})"
