"""What a message may be: some text, not too long, of characters that can be kept."""

from datetime import timedelta
from typing import Any

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)

LONGEST_MESSAGE = 50_000
"""Characters of one message; far above what the token budget lets through."""

LEASE = timedelta(minutes=1)
"""How long a turn may hold its thread without a sign of life."""

WAIT = timedelta(seconds=5)
"""How long a second turn of a thread waits for the first one before it is refused."""


def is_text(content: str | list[str | dict[str, Any]]) -> bool:
    """Whether a message's content is text alone: the budget counts nothing else (RF-34)."""
    if isinstance(content, str):
        return True
    return all(isinstance(part, str) or part.get("type") == "text" for part in content)


def check_message(text: str) -> str:
    """The message as it is. Raises InputError when it is empty, too long, or has characters that no store takes."""
    if not isinstance(text, str):
        raise InputError(sentences("message_no_text"))
    if not text.strip():
        raise InputError(sentences("message_empty"))
    if len(text) > LONGEST_MESSAGE:
        raise InputError(sentences("message_too_long", length=len(text), longest=LONGEST_MESSAGE))
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(sentences("message_not_text"))
    return str(text)
