"""Every way in which a model fails, over real HTTP where it can be, is one sentence that says what to do."""

import socket
from collections.abc import Iterator

import httpx
import openai
import pytest
from langchain_core.exceptions import ContextOverflowError, ModelTimeoutError

from recuerdo.nodes.call_llm import completions
from recuerdo.nodes.call_llm.failures import model_failure, sentences
from recuerdo.nodes.call_llm.model import build_model
from recuerdo.state.errors import ModelError
from recuerdo.stores.settings import Settings
from tests.fake_openai import FakeOpenAI, Reply, cut_off, ended_early, failed_midway, failure, slow, stalled

KEY = "sk-very-secret-key"

LEAKING = f"Incorrect API key provided: {KEY}. See http://ana:{KEY}@host"


@pytest.fixture(autouse=True)
def no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions, "MAX_RETRIES", 0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions, "TIMEOUT", openai.Timeout(30, read=0.1))


def failure_of(url: str, *, stream: bool) -> ModelError:
    model = build_model(Settings(_env_file=None, openai_api_key=KEY, openai_base_url=url))
    with pytest.raises(Exception) as caught:
        list(model.stream("hola")) if stream else model.invoke("hola")
    return model_failure(caught.value)


def texts(error: ModelError) -> Iterator[str]:
    yield from (str(error), error.sentence.es, error.sentence.en)


ANSWERED = [
    (failure(401, "invalid_api_key", LEAKING), "OPENAI_API_KEY"),
    (failure(403, "forbidden", LEAKING), "permission"),
    (failure(404, "model_not_found", LEAKING), "RECUERDO_MODEL and OPENAI_BASE_URL"),
    (failure(429, "rate_limit_exceeded", LEAKING), "wait a moment"),
    (failure(429, "insufficient_quota", LEAKING), "credit"),
    (failure(500, None, LEAKING), "failed (HTTP 500)"),
    (failure(503, None, LEAKING), "failed (HTTP 503)"),
    (failure(400, "context_length_exceeded", LEAKING), "too long"),
    (failure(400, None, "This model's maximum context length is 4096 tokens."), "too long"),
    (failure(400, "exceed_context_size_error", "the request exceeds the available context size"), "too long"),
    (failure(400, "invalid_value", LEAKING), "refused the request (HTTP 400)"),
    (failure(422, None, LEAKING), "refused the request (HTTP 422)"),
]
BROKEN_STREAMS = [
    (cut_off("uno dos tres"), "broke off"),
    (ended_early("uno dos tres"), "broke off"),
    (failed_midway("uno dos tres"), "broke off"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("reply", "says"), ANSWERED)
def test_rf_52_an_answered_failure_says_what_to_do(reply: Reply, says: str, stream: bool) -> None:
    with FakeOpenAI([reply]) as server:
        error = failure_of(server.url, stream=stream)
    assert says in str(error)
    assert all(KEY not in shown and "\n" not in shown for shown in texts(error))


@pytest.mark.parametrize(("reply", "says"), BROKEN_STREAMS)
def test_rf_52_a_broken_stream_says_what_to_do(reply: Reply, says: str) -> None:
    with FakeOpenAI([reply]) as server:
        assert says in str(failure_of(server.url, stream=True))


@pytest.mark.parametrize("stream", [False, True])
def test_rf_52_a_server_that_does_not_answer_is_told(stream: bool, impatient: None) -> None:
    with FakeOpenAI([slow("tarde", 30)]) as server:
        assert "in time" in str(failure_of(server.url, stream=stream))


def test_rf_52_a_stream_that_falls_silent_is_told(impatient: None) -> None:
    with FakeOpenAI([stalled("uno dos tres")]) as server:
        assert "in time" in str(failure_of(server.url, stream=True))


def test_rf_52_a_reply_cut_off_without_streaming_broke_off() -> None:
    with FakeOpenAI([cut_off("uno dos tres")]) as server:
        assert "broke off" in str(failure_of(server.url, stream=False))


def test_rf_52_a_server_that_is_down_is_named_without_the_password() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = failure_of(f"http://ana:{KEY}@127.0.0.1:{port}/v1", stream=False)
    assert f"(127.0.0.1:{port}) cannot be reached" in str(error)
    assert all(KEY not in shown and "ana" not in shown for shown in texts(error))


def test_rf_52_an_address_that_is_no_model_server_is_told() -> None:
    with FakeOpenAI([]) as server:
        error = failure_of(server.url.removesuffix("/v1"), stream=False)
    assert "usually ends in /v1" in str(error)


def test_rf_52_anything_else_is_told_by_its_kind_alone() -> None:
    error = model_failure(ValueError(LEAKING))
    assert "failed (ValueError)" in str(error)
    assert all(KEY not in shown for shown in texts(error))


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (TimeoutError(), "timed_out"),
        (ContextOverflowError("too long"), "context_too_long"),
        (ConnectionResetError(), "unreachable"),
    ],
)
def test_errors_of_other_providers_are_told_by_their_class(error: Exception, key: str) -> None:
    assert model_failure(error).sentence.es.startswith(sentences(key).es.split("{")[0])


def test_a_server_that_does_not_take_the_connection_in_time_is_unreachable() -> None:
    error = ModelTimeoutError()
    error.__cause__ = httpx.ConnectTimeout("timed out")
    assert "cannot be reached" in str(model_failure(error))


def test_a_status_tells_for_any_client() -> None:
    class ForeignError(Exception):
        status_code = 401

    assert model_failure(ForeignError(KEY)).sentence == sentences("wrong_key")


def test_a_model_error_is_given_back_as_it_is() -> None:
    error = ModelError(sentences("timed_out"))
    assert model_failure(error) is error


def test_errors_that_caused_each_other_end() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert "ValueError" in str(model_failure(first))
