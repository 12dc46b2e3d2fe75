"""What all commands share: the user's language, sentences, standard output and standard error."""

import json
import logging
import os
import re
import sys
from typing import Any, Protocol
from uuid import UUID

from rich.console import Console
from rich.text import Text

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import Sentence, Sentences, load_sentences

sentences = load_sentences(__package__)

# All control characters but tab and newline: a text must not steer the terminal it is shown on.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def language() -> str:
    """ "es" when the locale of the environment is Spanish, else "en"."""
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "es" if next(filter(None, names), "").lower().startswith("es") else "en"


class Say(Protocol):
    """Gives a sentence by its key, its places filled, in the user's language."""

    def __call__(self, key: str, /, **values: object) -> str:
        """The sentence ``key``."""
        ...


def speaker(table: Sentences) -> Say:
    """Says what stands in ``table`` in the user's language."""

    def say_one(key: str, /, **values: object) -> str:
        return table(key, **values).in_language(language())

    return say_one


say = speaker(sentences)
"""Says the command line's own sentences."""


def out() -> Console:
    """Standard output, without colours where it is not a terminal."""
    return Console(highlight=False)


def complain(sentence: Sentence) -> None:
    """One line on standard error, in the user's language."""
    print(printable(" ".join(sentence.in_language(language()).split())), file=sys.stderr)


def note(key: str, **values: object) -> None:
    """One line on standard error that is no error."""
    complain(sentences(key, **values))


def printable(text: str) -> str:
    """``text`` without characters that steer a terminal."""
    return _CONTROL.sub("", text)


def plain_text(text: str, style: str = "") -> Text:
    """A text as it is, no markup in it, fit for a terminal."""
    return Text(printable(text), style)


def print_json(document: Any) -> None:
    """The one JSON document of a command with ``--json``."""
    print(json.dumps(document, ensure_ascii=False, indent=2, default=str))


def is_terminal() -> bool:
    """Whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def piped_text() -> str:
    """The whole of standard input as one text, without the newline at its end."""
    raw = sys.stdin.buffer.read()
    return raw.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")


def quiet_logs() -> None:
    """Only errors of libraries reach a person's terminal."""
    logging.basicConfig(level=logging.ERROR, format="%(name)s: %(message)s")


def checked_name(option: str, name: str | None) -> str | None:
    """A user, conversation, tenant or assistant as given. Raises InputError for one that cannot be kept."""
    if name is not None and (not name.strip() or not name.isprintable()):
        raise InputError(sentences("name_invalid", option=option))
    return name


def checked_id(text: str, listing: str) -> UUID:
    """An id as given. Raises InputError for a text that is none, which names the command that lists them."""
    try:
        return UUID(text)
    except ValueError:
        raise InputError(sentences("id_invalid", id=text[:60], listing=listing)) from None
