"""What the operating system says, in the user's language."""

import errno
import os

import pytest

from recuerdo.state.os_errors import system_reason
from recuerdo.state.sentences import Sentence


@pytest.mark.parametrize(
    ("number", "spanish"), [(errno.ENOENT, "no existe"), (errno.ENOSPC, "no queda espacio en el disco")]
)
def test_a_reason_is_said_in_both_languages(number: int, spanish: str) -> None:
    said = os.strerror(number)
    assert system_reason(OSError(number, said)) == Sentence(es=spanish, en=said)


def test_a_reason_that_is_not_known_is_said_as_the_system_does() -> None:
    assert system_reason(OSError(9999, "odd")) == Sentence(es="odd", en="odd")
    assert system_reason(BlockingIOError()).es == "BlockingIOError"
