"""LangGraph Studio's server with our graph: no key, no internet, only the data folder (issue 2, point 7)."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

import recuerdo
from recuerdo.graph.studio import LazyServices
from recuerdo.state.errors import InputError, StoreError
from recuerdo.stores.postgres.embedded import EmbeddedServer

ROOT = Path(__file__).parents[2]
CARLOS = {"user": "user-123"}
PREFERENCE = "Hola, soy Carlos. Prefiero respuestas breves."
QUESTION = "¿Qué te he dicho de mis preferencias?"
START_SECONDS = 90
STOP_SECONDS = 60


@dataclass(frozen=True)
class Studio:
    url: str
    log: Path


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A running ``langgraph dev``, ended as Ctrl-C ends it; nothing of ours outlives it."""
    folder = tmp_path_factory.mktemp("studio")
    port, log = _free_port(), folder / "log"
    command = [Path(sys.executable).parent / "langgraph", "dev", "--no-browser", "--no-reload"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--config", ROOT / "langgraph.json", "--port", str(port)],
            cwd=folder,
            env=_environment(folder),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process, log)
        yield Studio(url, log)
        process.send_signal(signal.SIGINT)
        process.wait(STOP_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert EmbeddedServer(folder / "data" / "postgres").pid is None, "the embedded server has ended too"


@pytest.fixture
async def client(studio: Studio) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=studio.url) as client:
        yield client


async def test_the_assistant_draws_the_turn_and_names_its_context(client: LangGraphClient) -> None:
    (assistant,) = await client.assistants.search()
    assert assistant["graph_id"] == "recuerdo"
    drawing = await client.assistants.get_graph(assistant["assistant_id"])
    drawn = {(edge["source"], edge["target"]) for edge in drawing["edges"]}
    assert drawn == {(edge.source, edge.target) for edge in recuerdo.build_graph().get_graph().edges}
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    context = schemas["context_schema"] or {}
    assert context["properties"].keys() == {"user", "conversation", "tenant", "assistant", "mode"}


async def test_rf_51_a_run_streams_every_step_and_the_reply(client: LangGraphClient) -> None:
    thread = await _thread(client)
    updates, chunks = await _stream(client, thread, PREFERENCE)
    expected = ["receive", "build_context", "check_tokens", "build_prompt", "call_llm", "update_memory"]
    assert list(updates) == expected
    tokens = [chunk["text"] for chunk in chunks if chunk["type"] == "token"]
    assert len(tokens) > 1
    state = await client.threads.get_state(thread)
    assert "".join(tokens) == _messages(state)[-1]["content"]
    assert chunks[-1]["type"] == "done"


async def test_nothing_is_unavailable_inside_the_server(client: LangGraphClient) -> None:
    """A call that blocks the loop fails here, and a source that fails is only left out of the prompt."""
    updates, chunks = await _stream(client, await _thread(client), "¿Cómo va AAPL?")
    work = updates["build_context"]["work"]
    assert [step for step in work["trace"] if step["status"] == "unavailable"] == []
    assert work["unavailable"] == []
    assert chunks[-1]["data"]["unavailable"] == []


async def test_a_second_turn_of_the_thread_remembers_the_first(client: LangGraphClient) -> None:
    thread = await _thread(client)
    await _stream(client, thread, PREFERENCE)
    updates, _ = await _stream(client, thread, QUESTION)
    prompt = updates["build_prompt"]["work"]["requests"][-1]["messages"]
    assert PREFERENCE in [message["content"] for message in prompt]
    said = [message["content"] for message in _messages(await client.threads.get_state(thread))]
    assert len(said) == 4
    assert said[::2] == [PREFERENCE, QUESTION]
    assert "breves" in said[-1]


async def test_or_3_the_working_keys_are_gone_when_the_turn_is_over(client: LangGraphClient) -> None:
    thread = await _thread(client)
    await _stream(client, thread, PREFERENCE)
    state = await client.threads.get_state(thread)
    assert state["next"] == []
    assert isinstance(state["values"], dict)
    assert state["values"]["work"] is None
    assert state["values"]["error"] is None


async def test_history_shows_the_turns_step_by_step(client: LangGraphClient) -> None:
    thread = await _thread(client)
    await _stream(client, thread, PREFERENCE)
    history = await client.threads.get_history(thread, limit=20)
    steps = [node for checkpoint in reversed(history) for node in checkpoint["next"]]
    assert steps[0] == "__start__"
    assert steps[1:] == [
        "receive",
        "build_context",
        "check_tokens",
        "build_prompt",
        "call_llm",
        "update_memory",
    ]


async def test_or_3_durability_exit_leaves_one_checkpoint_per_turn(client: LangGraphClient) -> None:
    thread = await _thread(client)
    await _wait(client, thread, PREFERENCE, durability="exit")
    history = await client.threads.get_history(thread, limit=20)
    assert [checkpoint["next"] for checkpoint in history] == [[]]


async def test_identity_comes_from_the_context(client: LangGraphClient) -> None:
    await _wait(client, await _thread(client), PREFERENCE, context={"user": "user-context"})
    known = await _wait(client, await _thread(client), QUESTION, context={"user": "user-context"})
    anonymous = await _wait(client, await _thread(client), QUESTION)
    assert "brief" in known["messages"][-1]["content"]
    assert "brief" not in anonymous["messages"][-1]["content"]


async def test_identity_comes_from_configurable(client: LangGraphClient) -> None:
    config = {"configurable": {"user": "user-configurable"}}
    await _wait(client, await _thread(client), PREFERENCE, config=config)
    known = await _wait(client, await _thread(client), QUESTION, config=config)
    assert "brief" in known["messages"][-1]["content"]


async def test_a_thread_belongs_to_its_owner(client: LangGraphClient) -> None:
    thread = await _thread(client)
    await _wait(client, thread, PREFERENCE, context=CARLOS)
    refused = await _wait(client, thread, QUESTION, context={"user": "somebody-else"})
    assert refused["error"]["kind"] == "ScopeError"
    assert QUESTION not in [message["content"] for message in refused["messages"]]


async def test_a_message_that_cannot_be_taken_is_refused_with_a_sentence(client: LangGraphClient) -> None:
    thread = await _thread(client)
    refused = await _wait(client, thread, "  ", context=CARLOS)
    assert refused["error"]["kind"] == "InputError"
    assert refused["messages"] == []
    taken = await _wait(client, thread, PREFERENCE, context=CARLOS)
    assert taken["error"] is None
    assert len(taken["messages"]) == 2


async def test_runs_of_several_threads_at_once(client: LangGraphClient) -> None:
    threads = [await _thread(client) for _ in range(4)]
    states = await asyncio.gather(
        *(_wait(client, thread, PREFERENCE, context={"user": f"user-{n}"}) for n, thread in enumerate(threads))
    )
    assert [state["error"] for state in states] == [None] * 4
    assert [len(state["messages"]) for state in states] == [2] * 4


async def test_no_run_blocked_the_loop_or_failed(client: LangGraphClient, studio: Studio) -> None:
    await _wait(client, await _thread(client), PREFERENCE, context=CARLOS)
    log = re.sub(r"\x1b\[[0-9;]*m", "", studio.log.read_text(encoding="utf-8"))
    assert "Background run succeeded" in log
    assert "Background run failed" not in log
    assert "Blocking call" not in log


@pytest.fixture
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    """Settings of a database that only this test uses; no ``.env`` of the developer's."""
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECUERDO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DATABASE_URL", database_url)


@pytest.mark.usefixtures("own_settings")
async def test_without_a_thread_the_graph_refuses_clearly() -> None:
    with pytest.raises(InputError, match="thread_id"):
        await recuerdo.build_graph().ainvoke({"messages": [{"role": "user", "content": "Hola"}]})


@pytest.mark.usefixtures("own_settings")
async def test_services_open_once_per_loop_also_when_a_waiter_is_cancelled() -> None:
    provide = LazyServices()
    impatient = asyncio.create_task(provide())
    patient = [asyncio.create_task(provide()) for _ in range(3)]
    await asyncio.sleep(0)
    impatient.cancel()
    first, *others = await asyncio.gather(*patient)
    assert impatient.cancelled()
    assert all(services is first for services in [*others, await provide()])
    await _close(first)


@pytest.mark.usefixtures("own_settings")
def test_services_close_with_their_loop_and_another_loop_gets_its_own() -> None:
    provide = LazyServices()

    async def services_pool() -> Any:
        pool = (await provide()).database.pool
        assert not pool.closed
        return pool

    first, second = asyncio.run(services_pool()), asyncio.run(services_pool())
    assert first is not second
    assert first.closed
    assert second.closed


@pytest.mark.usefixtures("own_settings")
async def test_an_opening_that_failed_is_tried_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide = LazyServices()
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(StoreError):
        await provide()
    monkeypatch.setenv("DATABASE_URL", database_url)
    await _close(await provide())


_OURS = ("RECUERDO_", "OPENAI_", "DATABASE_URL", "CHROMA_URL", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_")


def _environment(folder: Path) -> dict[str, str]:
    """Nothing set but the data folder, and no way out to the internet."""
    nowhere = f"http://127.0.0.1:{_free_port()}"
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "RECUERDO_DATA": str(folder / "data"),
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "NO_PROXY": "127.0.0.1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/ok", trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail(f"langgraph dev does not answer:\n{log.read_text(encoding='utf-8')[-4000:]}")


async def _thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


async def _stream(
    client: LangGraphClient, thread: str, text: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Carlos says ``text``: the update of each node in order, and the streamed chunks."""
    updates: dict[str, Any] = {}
    chunks = []
    async for part in client.runs.stream(
        thread, "recuerdo", input=_said(text), context=CARLOS, stream_mode=["updates", "custom"]
    ):
        assert part.event != "error", part.data
        if part.event == "updates":
            updates |= part.data
        elif part.event == "custom":
            chunks.append(part.data)
    return updates, chunks


async def _wait(client: LangGraphClient, thread: str, text: str, **options: Any) -> dict[str, Any]:
    """Run one turn to its end and return the state."""
    state = await client.runs.wait(thread, "recuerdo", input=_said(text), **options)
    assert isinstance(state, dict)
    return state


def _said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def _messages(state: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = state["values"]["messages"]
    return messages


async def _close(services: Any) -> None:
    await services.index.close()
    await services.database.close()
