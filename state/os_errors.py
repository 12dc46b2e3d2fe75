"""Why the operating system did not do something, as a part of a sentence in both languages."""

import errno

from recuerdo.state.sentences import Sentence, load_sentences

_sentences = load_sentences(__package__, "os_errors_sentences.yaml")


def system_reason(error: OSError) -> Sentence:
    """The reason in words; of an error that is not in the table, as the system says it."""
    key = errno.errorcode.get(error.errno or 0, "")
    if key in _sentences:
        return _sentences(key)
    said = error.strerror or type(error).__name__
    return Sentence(es=said, en=said)
