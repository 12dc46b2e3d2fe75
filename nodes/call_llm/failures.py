"""What goes wrong with a model, as one clear sentence that says what to do.

The error is told by its class and status alone, so nothing of a provider's package is imported here. The
provider's own text is never repeated: some servers quote the key in it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from langchain_core import exceptions as langchain

from recuerdo.state.errors import ModelError
from recuerdo.state.sentences import Sentence, load_sentences

sentences = load_sentences(__package__)

# As OpenAI, vLLM, llama.cpp and gateways in front of them say it.
_TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error"}
_TOO_LONG_PHRASES = ("context length", "context window", "context size", "prompt is too long")
_NO_CREDIT_CODES = {"insufficient_quota", "billing_hard_limit_reached"}


class BrokenReplyError(langchain.ModelConnectionError):
    """A reply ended before the model said that it was finished."""


class EmptyReplyError(Exception):
    """A reply came to its end without a word and without a call of a tool."""


class _Kind(NamedTuple):
    """A sentence's key, and what tells that it applies: classes, names of classes, HTTP statuses."""

    key: str
    classes: tuple[type[Exception], ...] = ()
    names: frozenset[str] = frozenset()
    statuses: range = range(0)


# The first that fits. The names are those of httpx and of the openai package, whatever their version.
_KINDS = (
    _Kind("empty_reply", (EmptyReplyError,)),
    _Kind("context_too_long", (langchain.ContextOverflowError,)),
    _Kind("wrong_key", (langchain.ModelAuthenticationError,), statuses=range(401, 402)),
    _Kind("no_permission", (langchain.ModelPermissionDeniedError,), statuses=range(403, 404)),
    _Kind("unknown_model", (langchain.ModelNotFoundError,), statuses=range(404, 405)),
    _Kind("rate_limited", (langchain.ModelRateLimitError,), statuses=range(429, 430)),
    _Kind("server_error", (langchain.ModelAPIError,), statuses=range(500, 600)),
    _Kind("refused", (langchain.ModelInvalidRequestError,), statuses=range(400, 500)),
    _Kind("unreachable", names=frozenset({"ConnectTimeout"})),
    _Kind(
        "timed_out",
        (langchain.ModelTimeoutError, TimeoutError),
        frozenset({"TimeoutException", "APITimeoutError"}),
    ),
    _Kind("broken_off", (BrokenReplyError,), frozenset({"ReadError", "RemoteProtocolError"})),
    _Kind(
        "unreachable",
        (langchain.ModelConnectionError, ConnectionError),
        frozenset({"TransportError", "APIConnectionError"}),
    ),
    # An error event inside a stream: the openai package raises it without a status.
    _Kind("broken_off", names=frozenset({"APIError"})),
)


def model_failure(error: Exception) -> ModelError:
    """Turn whatever a chat model raised into a ModelError with one sentence in Spanish and English.

    The sentence names no key, no password of a URL and no text of the provider, and says what to do. Raise
    it ``from None`` where the traceback would reach a log: the original may quote the key. A ModelError is
    given back as it is. (Issue 2, point 5.)
    """
    if isinstance(error, ModelError):
        return error
    return ModelError(_sentence(error))


def _sentence(error: Exception) -> Sentence:
    if _is_too_long(error):
        return sentences("context_too_long")
    if getattr(error, "code", None) in _NO_CREDIT_CODES:
        return sentences("no_credit")
    kind = next((kind for kind in _KINDS if _fits(kind, error)), None)
    if kind is None:
        return sentences("unusable", kind=type(error).__name__)
    return sentences(kind.key, status=_status(error) or "", place=_place(error))


def _fits(kind: _Kind, error: Exception) -> bool:
    causes = tuple(_causes(error))
    return (
        _status(error) in kind.statuses
        or isinstance(error, kind.classes)
        or any(type_.__name__ in kind.names for cause in causes for type_ in type(cause).__mro__)
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it: a provider's "connection error" hides whether one had been made."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _status(error: Exception) -> int:
    """The HTTP status of the answer, 0 without one."""
    response: Any = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    return status if isinstance(status, int) else 0


def _is_too_long(error: Exception) -> bool:
    if getattr(error, "code", None) in _TOO_LONG_CODES:
        return True
    return _status(error) in (400, 413) and any(words in str(error).lower() for words in _TOO_LONG_PHRASES)


def _place(error: Exception) -> str:
    """Host and port that were asked, in brackets, without the rest of the URL; empty when not known."""
    url: Any = getattr(getattr(error, "request", None), "url", None)
    host, port = getattr(url, "host", ""), getattr(url, "port", None)
    if not host:
        return ""
    return f" ({host}:{port})" if port else f" ({host})"
