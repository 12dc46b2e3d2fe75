"""Whether a name, such as the key of an item, is sensitive itself: a name is no sentence, so its form alone tells."""

import re
import unicodedata

from recuerdo.stores.sensitive.finding import find_spans
from recuerdo.stores.sensitive.reading import read
from recuerdo.stores.sensitive.secrets import names_a_thing, says_secret

_JOINT = re.compile("[_:/=|.]")


def is_sensitive_name(name: str) -> bool:
    """Whether ``name`` is, or holds, a card or account number, a tax or identity number, a key or a password.

    Digits alone (an order, a date, a telephone number, a user's number) are none: in a sentence their words would
    decide, and here are none. A name of several words is read as a sentence.
    """
    whole = unicodedata.normalize("NFC", name)
    if names_a_thing(whole, 0, len(whole)):
        return False
    apart = _JOINT.sub(" ", whole)
    reading = read(apart)
    if reading.sure:
        return True
    is_phrase = " " in whole.strip() or says_secret(reading.folded_text, 0, len(apart))
    return is_phrase and bool(find_spans(whole) or find_spans(apart))
