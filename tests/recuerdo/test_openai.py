"""Whole turns over real HTTP, through langchain-openai, against a scripted server on this machine."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from recuerdo.agent import Agent
from recuerdo.nodes.call_llm import completions
from recuerdo.state.errors import ModelError
from tests.fake_openai import (
    FakeOpenAI,
    Reply,
    cut_off,
    ended_early,
    failed_midway,
    failure,
    slow,
    stalled,
    text,
    tool_calls,
)
from tests.recuerdo.carlos import CARLOS, CONVERSATION, House, seed

KEY = "sk-very-secret"
SAID = "El precio de AAPL sube hoy"
BROKEN_OFF = "El precio de AAPL sube"


@contextmanager
def serving(*script: Reply) -> Iterator[FakeOpenAI]:
    with FakeOpenAI(script) as server:
        yield server


def endpoint(server: FakeOpenAI, **more: Any) -> dict[str, Any]:
    return {"openai_api_key": KEY, "openai_base_url": server.url, "model": "tiny", **more}


async def say(agent: Agent, message: str) -> Any:
    return await agent.send(message, user=CARLOS, conversation=CONVERSATION)


async def history(agent: Agent) -> list[tuple[str, str, str]]:
    found = await agent.conversations.get(CONVERSATION, user=CARLOS)
    return [(m.role, m.content, m.status) for m in found]


def texts(body: dict[str, Any]) -> list[str]:
    """User's and assistant's texts of a request's JSON."""
    return [m["content"] for m in body["messages"] if m["role"] in ("user", "assistant")]


async def test_a_turn_is_streamed_with_usage(house: House) -> None:
    with serving(text(SAID, input_tokens=1200, output_tokens=300)) as server:
        async with house.open(settings=endpoint(server)) as agent:
            await seed(agent)
            chunks = [c async for c in agent.stream("¿Cómo va AAPL?", user=CARLOS, conversation=CONVERSATION)]
            usage = await agent.conversations.usage(CONVERSATION, user=CARLOS)
    turn = chunks[-1].turn
    assert turn is not None and turn.reply.startswith(SAID)
    assert len([c for c in chunks if c.type == "token"]) >= len(SAID.split())
    assert (usage.input, usage.output, usage.total) == (1200, 300, 1500)
    (body,) = server.requests
    assert body["stream"] is True and body["max_tokens"] == 2000
    assert [m["role"] for m in body["messages"]] == ["system", "system", "user"]
    assert {t["function"]["name"] for t in body["tools"]} == {"get_quote", "read_tool_result"}
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_a_tool_loop_over_http(house: House) -> None:
    asked = tool_calls(("get_quote", {"symbol": "AAPL"}), ("get_quote", {"symbol": "TSLA"}))
    with serving(asked, text(SAID), text("Nada más")) as server:
        async with house.open(settings=endpoint(server)) as agent:
            await seed(agent)
            turn = await say(agent, "¿Precios?")
            await say(agent, "¿Y ahora?")
    assert turn.reply.startswith(SAID) and turn.record.tool_rounds == 1
    for body in server.requests[1:]:
        asked_for = [c["id"] for m in body["messages"] for c in m.get("tool_calls") or ()]
        answered = [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]
        assert asked_for == answered == ["call_1", "call_2"]
    assert "185.50" in server.requests[1]["messages"][-2]["content"]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_failure_is_tried_again(house: House, status: int) -> None:
    with serving(failure(status, retry_after=0.01), text(SAID)) as server:
        async with house.open(settings=endpoint(server)) as agent:
            turn = await say(agent, "¿Cómo va AAPL?")
            assert (await history(agent))[0][2] == "ok"
    assert turn.reply.startswith(SAID) and len(server.requests) == 2


@pytest.mark.parametrize(
    ("reply", "tries", "words"),
    [
        (failure(429, retry_after=0.01), 3, "demasiadas peticiones"),
        (failure(429, "insufficient_quota", retry_after=0.01), 3, "saldo"),
        (failure(500, retry_after=0.01), 3, "HTTP 500"),
        (failure(401, "invalid_api_key", f"Incorrect API key provided: {KEY}"), 1, "OPENAI_API_KEY"),
        (failure(404, "model_not_found"), 1, "RECUERDO_MODEL"),
        (failure(400, "context_length_exceeded"), 1, "demasiado larga"),
        (text(""), 1, "no ha respondido nada"),
    ],
)
async def test_a_failure_is_one_clear_error_and_the_next_turn_works(
    house: House, reply: Reply, tries: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="recuerdo")
    with serving(*[reply] * tries, text(SAID)) as server:
        async with house.open(settings=endpoint(server)) as agent:
            with pytest.raises(ModelError) as error:
                await say(agent, "¿Cómo va AAPL?")
            assert words in error.value.sentence.es
            assert KEY not in f"{error.value}{error.value.sentence.es}{caplog.text}"
            assert await history(agent) == [("user", "¿Cómo va AAPL?", "failed")]
            turn = await say(agent, "¿Y ahora?")
    assert turn.reply.startswith(SAID)
    assert len(server.requests) == tries + 1
    assert texts(server.requests[-1]) == ["¿Cómo va AAPL?", "¿Y ahora?"]


@pytest.mark.parametrize("reply", [cut_off(SAID), failed_midway(SAID), ended_early(SAID)])
async def test_a_reply_cut_in_mid_stream_is_kept_as_partial(house: House, reply: Reply) -> None:
    with serving(reply, text("Ahora sí")) as server:
        async with house.open(settings=endpoint(server)) as agent:
            seen = []
            with pytest.raises(ModelError, match="broke off"):
                async for chunk in agent.stream("¿Cómo va?", user=CARLOS, conversation=CONVERSATION):
                    seen.append(chunk.text)
            assert "".join(seen) == BROKEN_OFF
            assert await history(agent) == [
                ("user", "¿Cómo va?", "failed"),
                ("assistant", BROKEN_OFF, "partial"),
            ]
            turn = await say(agent, "¿Y ahora?")
    assert turn.reply.startswith("Ahora sí")
    assert texts(server.requests[-1]) == ["¿Cómo va?", "¿Y ahora?"]


@pytest.mark.parametrize(
    ("reply", "kept"),
    [(slow(SAID, 60), []), (stalled(SAID), [("assistant", BROKEN_OFF, "partial")])],
)
async def test_a_server_that_is_too_slow(
    house: House, monkeypatch: pytest.MonkeyPatch, reply: Reply, kept: list[tuple[str, str, str]]
) -> None:
    monkeypatch.setattr(completions, "TIMEOUT", completions.openai.Timeout(0.3))
    monkeypatch.setattr(completions, "MAX_RETRIES", 0)
    with serving(reply, text("Ahora sí")) as server:
        async with house.open(settings=endpoint(server)) as agent:
            with pytest.raises(ModelError) as error:
                await say(agent, "¿Cómo va?")
            assert "no ha respondido a tiempo" in error.value.sentence.es
            assert await history(agent) == [("user", "¿Cómo va?", "failed"), *kept]
            assert (await say(agent, "¿Y ahora?")).reply.startswith("Ahora sí")


async def test_a_server_that_is_down(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions, "MAX_RETRIES", 0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://user:{KEY}@127.0.0.1:{taken.getsockname()[1]}/v1"
        async with house.open(settings={"openai_base_url": url}) as agent:
            with pytest.raises(ModelError) as error:
                await say(agent, "¿Cómo va?")
            assert "OPENAI_BASE_URL" in error.value.sentence.es
            assert KEY not in error.value.sentence.es + str(error.value)
            assert await history(agent) == [("user", "¿Cómo va?", "failed")]


async def test_a_stopped_turn_hangs_up(house: House) -> None:
    with serving(stalled(SAID), text("Ahora sí")) as server:
        async with house.open(settings=endpoint(server)) as agent:
            stream = agent.stream("¿Cómo va?", user=CARLOS, conversation=CONVERSATION)
            said = ""
            while said != BROKEN_OFF:
                said += (await anext(stream)).text
            await stream.aclose()
            assert await history(agent) == [
                ("user", "¿Cómo va?", "ok"),
                ("assistant", BROKEN_OFF, "partial"),
            ]
            assert (await say(agent, "¿Y ahora?")).reply.startswith("Ahora sí")
