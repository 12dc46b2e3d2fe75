"""Why a field of a row was refused, in words for whoever wrote the file."""

from pydantic_core import ErrorDetails

from recuerdo.state.sentences import Sentence, load_sentences

sentences = load_sentences(__package__)


def reason_of(error: ErrorDetails) -> Sentence | str:
    """The reason in both languages; the checker's own words for what has no sentence."""
    key = f"field_{error['type']}"
    # "'<=', '<' or '>'" is English only.
    values = {name: str(value).replace(" or ", ", ") for name, value in error.get("ctx", {}).items()}
    return sentences(key, **values) if key in sentences else error["msg"]
