"""The OpenAI-compatible model over real HTTP, against a server on this machine only."""

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import openai
import pytest
from langchain_core.exceptions import ModelRateLimitError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.tools import tool

from recuerdo.nodes.call_llm import completions
from recuerdo.nodes.call_llm.failures import BrokenReplyError
from recuerdo.nodes.call_llm.model import DEFAULT_MODEL, build_model, close_model
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.state.errors import SettingsError
from recuerdo.stores.settings import Settings
from tests.fake_openai import FakeOpenAI, cut_off, ended_early, failure, slow, stalled, text, tool_calls

VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "RECUERDO_MODEL")
DEAD_PROXY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def only_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the tester's counts, and nothing but 127.0.0.1 can be connected to."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] != "127.0.0.1":
            raise AssertionError(f"a connection to {address} was tried")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def settings(**values: Any) -> Settings:
    return Settings(_env_file=None, **values)


def model_at(server: FakeOpenAI, **values: Any) -> BaseChatModel:
    return build_model(settings(openai_api_key="sk-test", openai_base_url=server.url, **values))


def invoke(model: BaseChatModel) -> AIMessage:
    return model.invoke("hola")


async def ainvoke(model: BaseChatModel) -> AIMessage:
    return await model.ainvoke("hola")


def stream(model: BaseChatModel) -> AIMessageChunk:
    return _joined(list(model.stream("hola")))


async def astream(model: BaseChatModel) -> AIMessageChunk:
    return _joined([chunk async for chunk in model.astream("hola")])


def _joined(chunks: list[Any]) -> AIMessageChunk:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


def run(way: Callable[[BaseChatModel], Any], model: BaseChatModel) -> AIMessage:
    result = way(model)
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


every_way = pytest.mark.parametrize("way", [invoke, ainvoke, stream, astream])
streaming = pytest.mark.parametrize("way", [stream, astream])


@every_way
def test_rf_51_the_reply_and_the_usage_come_back(way: Callable[..., Any]) -> None:
    with FakeOpenAI([text("uno dos tres", input_tokens=1200, output_tokens=300)]) as server:
        reply = run(way, model_at(server, model="m1"))
    assert reply.text == "uno dos tres"
    assert reply.usage_metadata["input_tokens"] == 1200
    assert reply.usage_metadata["output_tokens"] == 300
    assert server.requests[0]["model"] == "m1"
    assert server.headers[0]["authorization"] == "Bearer sk-test"


@every_way
def test_rf_51_parallel_tool_calls_come_back_whole(way: Callable[..., Any]) -> None:
    calls = [("get_price", {"symbol": "AAPL"}), ("note", {"text": "año"})]
    with FakeOpenAI([tool_calls(*calls)]) as server:
        reply = run(way, model_at(server))
    assert [(call["name"], call["args"], call["id"]) for call in reply.tool_calls] == [
        ("get_price", {"symbol": "AAPL"}, "call_1"),
        ("note", {"text": "año"}, "call_2"),
    ]


def test_rf_34_the_output_limit_has_the_name_that_every_compatible_server_knows() -> None:
    with FakeOpenAI([text("a"), text("b")]) as server:
        model = model_at(server)
        model.bind(max_tokens=2000).invoke("hola")
        list(model.bind(max_tokens=2000).stream("hola"))
    assert [request["max_tokens"] for request in server.requests] == [2000, 2000]
    assert all("max_completion_tokens" not in request for request in server.requests)


def test_rf_34_the_output_limit_has_the_name_that_openai_wants() -> None:
    model = build_model(settings(openai_api_key="sk-test"))
    payload = model._get_request_payload("hola", max_tokens=2000)
    assert payload["max_completion_tokens"] == 2000
    assert "max_tokens" not in payload


def test_messages_and_tools_go_out_as_given() -> None:
    @tool
    def get_price(symbol: str) -> str:
        """The price."""
        return symbol

    with FakeOpenAI([text("ok")]) as server:
        prompt = [
            SystemMessage("rol"),
            HumanMessage("a"),
            AIMessage("b"),
            SystemMessage("ahora"),
            HumanMessage("c"),
        ]
        model_at(server).bind_tools([get_price]).invoke(prompt)
    request = server.requests[0]
    assert [(message["role"], message["content"]) for message in request["messages"]] == [
        ("system", "rol"),
        ("user", "a"),
        ("assistant", "b"),
        ("system", "ahora"),
        ("user", "c"),
    ]
    assert request["tools"][0]["function"]["name"] == "get_price"


@every_way
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again_after_the_time_the_server_names(
    way: Callable[..., Any], status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="openai")
    with FakeOpenAI([failure(status, retry_after=0.01), text("ya está")]) as server:
        assert run(way, model_at(server)).text == "ya está"
    assert len(server.requests) == 2
    assert "in 0.010000 seconds" in caplog.text


def test_a_failure_that_stays_is_raised_after_two_retries() -> None:
    with FakeOpenAI([failure(429, retry_after=0.01)] * 4) as server, pytest.raises(ModelRateLimitError):
        invoke(model_at(server))
    assert len(server.requests) == 3


def test_a_wrong_key_is_not_tried_again() -> None:
    with FakeOpenAI([failure(401)] * 2) as server, pytest.raises(openai.AuthenticationError):
        invoke(model_at(server))
    assert len(server.requests) == 1


@streaming
def test_a_stream_that_ends_in_good_form_but_early_is_an_error(way: Callable[..., Any]) -> None:
    with FakeOpenAI([ended_early("uno dos tres")]) as server, pytest.raises(BrokenReplyError):
        run(way, model_at(server))


@streaming
def test_a_stream_cut_off_is_an_error_and_is_not_started_again(way: Callable[..., Any]) -> None:
    with FakeOpenAI([cut_off("uno dos tres")] * 2) as server, pytest.raises(openai.APIConnectionError):
        run(way, model_at(server))
    assert len(server.requests) == 1


@every_way
def test_a_server_that_does_not_answer_is_given_up(
    way: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completions, "TIMEOUT", openai.Timeout(30, read=0.1))
    monkeypatch.setattr(completions, "MAX_RETRIES", 0)
    with FakeOpenAI([slow("tarde", 30)]) as server, pytest.raises(openai.APITimeoutError):
        run(way, model_at(server))


@streaming
def test_a_stream_that_falls_silent_is_given_up(
    way: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completions, "TIMEOUT", openai.Timeout(30, read=0.1))
    with FakeOpenAI([stalled("uno dos tres")]) as server, pytest.raises(openai.APITimeoutError):
        run(way, model_at(server))


def test_every_call_has_time_limits_and_two_retries() -> None:
    client = build_model(settings(openai_api_key="sk-test")).root_async_client
    assert client.max_retries == 2
    assert client.timeout == openai.Timeout(connect=5.0, read=120.0, write=30.0, pool=5.0)


def test_a_local_server_needs_no_key() -> None:
    with FakeOpenAI([text("ok")]) as server:
        assert invoke(build_model(settings(openai_base_url=server.url))).text == "ok"
    assert server.headers[0]["authorization"] == "Bearer none"


def test_a_key_alone_means_openai_and_the_default_model() -> None:
    model = build_model(settings(openai_api_key="sk-test"))
    assert model.model_name == DEFAULT_MODEL
    assert str(model.root_client.base_url) == "https://api.openai.com/v1/"


def test_without_settings_the_offline_responder_answers() -> None:
    assert isinstance(build_model(settings()), OfflineResponder)


def test_a_model_without_a_place_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match=r"gpt-x.*OPENAI_API_KEY or OPENAI_BASE_URL"):
        build_model(settings(model="gpt-x"))


@pytest.mark.parametrize(
    "url", ["localhost:11434/v1", "ftp://h/v1", "http://", "http://h:99999/v1", "http://[::1/v1"]
)
def test_a_base_url_that_is_none_is_a_settings_error(url: str) -> None:
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL"):
        build_model(settings(openai_base_url=url))


def test_the_settings_win_over_what_the_openai_package_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    surprises = {
        "OPENAI_API_BASE": "http://192.0.2.1/v1",
        "OPENAI_ORG_ID": "org-1",
        "OPENAI_PROJECT_ID": "proj-1",
        "OPENAI_ADMIN_KEY": "sk-admin",
        "OPENAI_PROXY": DEAD_PROXY,
        "LANGSMITH_GATEWAY": "true",
        "LANGSMITH_GATEWAY_API_KEY": "ls-key",
        "LC_OUTPUT_VERSION": "responses/v1",
    }
    with FakeOpenAI([text("ok"), text("ok")]) as server:
        for name, value in surprises.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENAI_BASE_URL", "http://192.0.2.1/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
        model = model_at(server)
        assert invoke(model).text == "ok"
        assert run(ainvoke, model).text == "ok"
    for headers in server.headers:
        assert headers["authorization"] == "Bearer sk-test"
        assert "openai-organization" not in headers
        assert "openai-project" not in headers


def test_a_server_on_this_machine_is_asked_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, DEAD_PROXY)
    with FakeOpenAI([text("ok"), text("ok")]) as server:
        assert invoke(model_at(server)).text == "ok"
        assert run(astream, model_at(server)).text == "ok"


def test_the_proxy_is_used_for_any_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI([text("ok")]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        model = build_model(settings(openai_base_url="http://models.invalid/v1"))
        with pytest.raises(openai.NotFoundError):
            invoke(model)
    assert proxy.paths == ["http://models.invalid/v1/chat/completions"]


def test_a_password_in_the_base_url_is_sent_but_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with FakeOpenAI([text("ok")]) as server:
        url = server.url.replace("http://", "http://ana:top%40secret@")
        model = build_model(settings(openai_base_url=url))
        assert invoke(model).text == "ok"
    assert server.headers[0]["authorization"] == "Basic YW5hOnRvcEBzZWNyZXQ="
    assert "secret" not in caplog.text + repr(model)


def test_each_event_loop_can_have_its_own_model() -> None:
    with FakeOpenAI([text("uno"), text("dos")]) as server:
        assert run(ainvoke, model_at(server)).text == "uno"
        assert run(ainvoke, model_at(server)).text == "dos"
    assert len(server.requests) == 2


async def test_a_closed_model_keeps_no_connection_and_closing_is_for_any_model() -> None:
    with FakeOpenAI([text("uno")]) as server:
        model = model_at(server)
        await ainvoke(model)
        await close_model(model)
        with pytest.raises(RuntimeError, match="closed"):
            await ainvoke(model)
    await close_model(OfflineResponder())


def test_who_configures_no_model_does_not_load_the_provider() -> None:
    code = (
        "import sys; from recuerdo.nodes.call_llm.model import build_model;"
        "from recuerdo.nodes.call_llm.failures import model_failure;"
        "from recuerdo.stores.settings import Settings;"
        "build_model(Settings(_env_file=None)); model_failure(ValueError());"
        "print({'openai', 'langchain_openai'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={})
    assert shown.stdout.strip() == "set()"
