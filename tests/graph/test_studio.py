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
from langchain_core.messages import HumanMessage
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient

import recuerdo
from recuerdo.graph.studio import LazyServices
from recuerdo.state.errors import InputError, StoreError
from recuerdo.stores.postgres.embedded import EmbeddedServer

ROOT = Path(__file__).parents[2]
CARLOS = {"user": "user-123"}
PREFERENCE = "Hola, soy Carlos. Prefiero respuestas breves. ¿Cómo va AAPL?"
QUESTION = "¿Qué te he dicho de mis preferencias?"
STEPS = ["receive", "build_context", "check_tokens", "build_prompt", "call_llm", "update_memory"]
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
    command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--config", str(ROOT / "langgraph.json"), "--port", str(port)],
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


@dataclass(frozen=True)
class StreamedTurn:
    """The update of each node in order, the streamed chunks, and what the thread holds afterwards."""

    thread: str
    updates: dict[str, Any]
    chunks: list[dict[str, Any]]
    state: Any
    history: list[Any]


@pytest.fixture(scope="module")
def first_turn(studio: Studio) -> StreamedTurn:
    with get_sync_client(url=studio.url) as client:
        thread = str(client.threads.create()["thread_id"])
    return _run(studio, thread, PREFERENCE)


@pytest.fixture
async def client(studio: Studio) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=studio.url) as client:
        yield client


async def test_the_assistant_draws_the_turn_and_names_its_context(client: LangGraphClient) -> None:
    (assistant,) = await client.assistants.search(graph_id="recuerdo")
    assert assistant["graph_id"] == "recuerdo"
    drawing = await client.assistants.get_graph(assistant["assistant_id"])
    drawn = {(edge["source"], edge["target"]) for edge in drawing["edges"]}
    assert drawn == {(edge.source, edge.target) for edge in recuerdo.build_graph().get_graph().edges}
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    context = schemas["context_schema"] or {}
    assert context["properties"].keys() == {"user", "conversation", "tenant", "assistant", "mode"}


def test_rf_51_a_run_streams_every_step_and_the_reply(first_turn: StreamedTurn) -> None:
    assert list(first_turn.updates) == STEPS
    tokens = [chunk["text"] for chunk in first_turn.chunks if chunk["type"] == "token"]
    assert len(tokens) > 1
    assert "".join(tokens) == first_turn.state["values"]["messages"][-1]["content"]
    assert first_turn.chunks[-1]["type"] == "done"


def test_nothing_is_unavailable_inside_the_server(first_turn: StreamedTurn) -> None:
    """A source that fails is left out of the prompt; a call that blocks the loop fails in this server."""
    work = first_turn.updates["build_context"]["work"]
    assert [step for step in work["trace"] if step["status"] == "unavailable"] == []
    assert work["unavailable"] == []
    assert first_turn.chunks[-1]["data"]["unavailable"] == []


def test_or_3_the_working_keys_are_gone_when_the_turn_is_over(first_turn: StreamedTurn) -> None:
    assert first_turn.state["next"] == []
    assert first_turn.state["values"]["work"] is None
    assert first_turn.state["values"]["error"] is None


def test_history_shows_the_turn_step_by_step(first_turn: StreamedTurn) -> None:
    steps = [node for checkpoint in reversed(first_turn.history) for node in checkpoint["next"]]
    assert steps == ["__start__", *STEPS]


def test_a_second_turn_of_the_thread_remembers_the_first(studio: Studio, first_turn: StreamedTurn) -> None:
    turn = _run(studio, first_turn.thread, QUESTION)
    prompt = turn.updates["build_prompt"]["work"]["requests"][-1]["messages"]
    assert PREFERENCE in [message["content"] for message in prompt]
    said = [message["content"] for message in turn.state["values"]["messages"]]
    assert len(said) == 4
    assert said[::2] == [PREFERENCE, QUESTION]
    assert "breves" in said[-1]


async def test_or_3_durability_exit_leaves_one_checkpoint_per_turn(client: LangGraphClient) -> None:
    thread = await _thread(client)
    await _wait(client, thread, PREFERENCE, durability="exit")
    history = await client.threads.get_history(thread, limit=20)
    assert [checkpoint["next"] for checkpoint in history] == [[]]


async def test_identity_comes_from_the_context_or_from_configurable(client: LangGraphClient) -> None:
    by_context = {"context": {"user": "user-context"}}
    by_config = {"config": {"configurable": {"user": "user-config"}}}
    await asyncio.gather(*(_new(client, PREFERENCE, **identity) for identity in (by_context, by_config)))
    known, also_known, anonymous = await asyncio.gather(
        *(_new(client, QUESTION, **identity) for identity in (by_context, by_config, {}))
    )
    assert "brief" in known["messages"][-1]["content"]
    assert "brief" in also_known["messages"][-1]["content"]
    assert "brief" not in anonymous["messages"][-1]["content"]


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


@pytest.mark.usefixtures("first_turn")
def test_no_run_blocked_the_loop_or_failed(studio: Studio) -> None:
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
        await recuerdo.build_graph().ainvoke({"messages": [HumanMessage("Hola")]})


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


def _run(studio: Studio, thread: str, text: str) -> StreamedTurn:
    """Carlos says ``text`` in ``thread``."""
    updates: dict[str, Any] = {}
    chunks = []
    with get_sync_client(url=studio.url) as client:
        for part in client.runs.stream(
            thread, "recuerdo", input=_said(text), context=CARLOS, stream_mode=["updates", "custom"]
        ):
            assert part.event != "error", part.data
            if part.event == "updates":
                updates |= part.data
            elif part.event == "custom":
                chunks.append(part.data)
        state = client.threads.get_state(thread)
        return StreamedTurn(thread, updates, chunks, state, client.threads.get_history(thread, limit=20))


async def _new(client: LangGraphClient, text: str, **options: Any) -> dict[str, Any]:
    """One turn in a thread of its own."""
    return await _wait(client, await _thread(client), text, **options)


async def _wait(client: LangGraphClient, thread: str, text: str, **options: Any) -> dict[str, Any]:
    """Run one turn to its end and return the state."""
    state = await client.runs.wait(thread, "recuerdo", input=_said(text), **options)
    assert isinstance(state, dict)
    return state


def _said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def _close(services: Any) -> None:
    await services.index.close()
    await services.database.close()
