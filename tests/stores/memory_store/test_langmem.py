"""LangMem's tools and its store manager work on the store, with memories that the agent recalls."""

import re
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedStore, ToolNode
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langmem import create_manage_memory_tool, create_memory_store_manager, create_search_memory_tool

from recuerdo.stores.memory_store.namespaces import encode_label, memories_namespace
from recuerdo.stores.memory_store.store import MemoryStore
from recuerdo.stores.postgres.memories import NewMemory
from tests.scripted import ScriptedModel
from tests.stores.memory_store.conftest import Clock

USER = "ana@mail.example"
TEMPLATE = ("memories", "A1", "{user}")
CONFIG: Any = {"configurable": {"user": encode_label(USER)}}
ANA = memories_namespace("A1", USER)


def created_id(said: str) -> str:
    found = re.search(r"[0-9a-f-]{36}", said)
    assert found is not None
    return found.group()


async def in_graph(store: MemoryStore, run: Any, payload: Any) -> Any:
    """Run a LangMem tool as a node of a graph that has the store."""

    async def node(state: MessagesState) -> Any:
        return {"messages": [AIMessage(str(await run.ainvoke(payload)))]}

    graph = StateGraph(MessagesState).add_node("tool", node).add_edge(START, "tool").add_edge("tool", END)
    result = await graph.compile(store=store).ainvoke({"messages": []}, CONFIG)
    return result["messages"][-1].content


async def test_manage_and_search_tools(store: MemoryStore, clock: Clock) -> None:
    manage, search = create_manage_memory_tool(TEMPLATE), create_search_memory_tool(TEMPLATE)
    key = created_id(await in_graph(store, manage, {"content": "Ana prefers tea", "action": "create"}))
    own = store.memories("A1")
    assert [memory.text for memory in await own.list(USER, clock.now)] == ["Ana prefers tea"]
    learnt = await own.add(USER, NewMemory("fact", "Ana lives in Lima", "en", 0.9), clock.now)
    assert "Ana lives in Lima" in await in_graph(store, search, {"query": "where does Ana live"})
    change = {"content": "Ana prefers coffee", "action": "update", "id": key}
    assert key in await in_graph(store, manage, change)
    change = {"content": "Ana lives in Quito", "action": "update", "id": str(learnt.id)}
    await in_graph(store, manage, change)
    texts = {memory.text for memory in await own.list(USER, clock.now)}
    assert texts == {"Ana prefers coffee", "Ana lives in Quito"}
    await in_graph(store, manage, {"action": "delete", "id": key})
    assert [memory.text for memory in await own.list(USER, clock.now)] == ["Ana lives in Quito"]
    ben: Any = {"configurable": {"user": "ben"}}
    assert await create_search_memory_tool(TEMPLATE, store=store).ainvoke({"query": "Ana"}, ben) == "[]"


def test_the_tools_work_without_a_loop(store: MemoryStore) -> None:
    manage = create_manage_memory_tool(("notes",), store=store)
    search = create_search_memory_tool(("notes",), store=store)
    key = created_id(manage.invoke({"content": "Ana prefers tea", "action": "create"}))
    assert "Ana prefers tea" in str(search.invoke({"query": "tea"}))
    manage.invoke({"action": "delete", "id": key})
    assert store.search(("notes",)) == []


def call(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{name}"}])


@pytest.mark.parametrize("namespace", [TEMPLATE, ("profile", "{user}")])
async def test_store_manager(store: MemoryStore, namespace: tuple[str, ...]) -> None:
    model = ScriptedModel(replies=[call("Memory", content="Ana prefers tea"), AIMessage("done")])
    manager = create_memory_store_manager(model, namespace=namespace, store=store)
    said = {"messages": [HumanMessage("I prefer tea")]}
    put = await manager.ainvoke(said, CONFIG)
    where = tuple(label.format(user=encode_label(USER)) for label in namespace)
    (item,) = await store.asearch(where)
    assert [each["key"] for each in put] == [item.key]
    assert item.value == {"kind": "Memory", "content": {"content": "Ana prefers tea"}}
    again = ScriptedModel(replies=[AIMessage("nothing new")])
    manager = create_memory_store_manager(again, namespace=namespace, store=store)
    assert await manager.ainvoke(said, CONFIG) == []
    assert "Ana prefers tea" in str(again.calls[0]["messages"])


async def test_store_manager_reads_what_the_agent_learnt(store: MemoryStore, clock: Clock) -> None:
    await store.memories("A1").add(USER, NewMemory("fact", "Ana lives in Lima", "en", 0.9), clock.now)
    model = ScriptedModel(replies=[AIMessage("nothing new")])
    manager = create_memory_store_manager(model, namespace=TEMPLATE, store=store)
    assert await manager.ainvoke({"messages": [HumanMessage("Where do I live?")]}, CONFIG) == []
    assert "Ana lives in Lima" in str(model.calls[0]["messages"])
    assert len(await store.asearch(ANA)) == 1


async def test_injected_store_and_runtime_store(store: MemoryStore) -> None:
    @tool
    async def remember(text: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
        """Remember a text."""
        await store.aput(ANA, "said", {"content": text})
        return "ok"

    async def ask(state: MessagesState) -> Any:
        return {"messages": [call("remember", text="likes tea")]}

    async def read(state: MessagesState, runtime: Runtime) -> Any:
        assert runtime.store is store
        found = await runtime.store.asearch(ANA, query="tea")
        return {"messages": [AIMessage(found[0].value["content"])]}

    graph = StateGraph(MessagesState).add_node(ask).add_node("tools", ToolNode([remember])).add_node(read)
    graph.add_edge(START, "ask").add_edge("ask", "tools").add_edge("tools", "read").add_edge("read", END)
    result = await graph.compile(store=store).ainvoke({"messages": []})
    assert result["messages"][-1].content == "likes tea"
