"""The turn graph: six steps, the compression between them and the tool loop; flat, every edge drawn."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from recuerdo.nodes.build_context.node import build_context
from recuerdo.nodes.build_prompt.node import build_prompt
from recuerdo.nodes.call import Call, Caller
from recuerdo.nodes.call_llm.node import after_model, call_llm
from recuerdo.nodes.check_tokens import after_check, check_tokens
from recuerdo.nodes.compress import compress
from recuerdo.nodes.receive.node import after_receive, receive
from recuerdo.nodes.run_tools.node import run_tools
from recuerdo.nodes.services import Services
from recuerdo.nodes.update_memory.node import update_memory
from recuerdo.state.errors import InputError
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import Mode, TurnState, TurnUpdate

sentences = load_sentences(__package__)

TICKET = "recuerdo_ticket"
"""Key in ``configurable`` under which an agent passes the reservation that its turn runs under."""

_STEPS_PER_TOOL_ROUND = 6
_STEPS_BESIDE = 10

Provide = Callable[[], Awaitable[Services]]
"""Gives the services of the running event loop."""

Router = Callable[[TurnState], str]

Node = Callable[[TurnState, Call], Awaitable[TurnUpdate]]

TurnGraph = CompiledStateGraph[TurnState, Any, TurnState, TurnState]


@dataclass
class TurnContext:
    """Who speaks and where, per run. What is None comes from the config, then from settings and plan."""

    user: str | None = None
    conversation: str | None = None
    tenant: str | None = None
    assistant: str | None = None
    mode: Mode = "live"


def build_turn_graph(provide: Provide, checkpointer: BaseCheckpointSaver[str] | None = None) -> TurnGraph:
    """Compile the turn over services that ``provide`` gives."""
    graph = StateGraph(TurnState, context_schema=TurnContext)
    for node in (
        receive,
        build_context,
        check_tokens,
        compress,
        build_prompt,
        call_llm,
        run_tools,
        update_memory,
    ):
        graph.add_node(node.__name__, _bound(node, provide))
    graph.add_edge(START, "receive")
    graph.add_conditional_edges("receive", _at_once(after_receive))
    graph.add_edge("build_context", "check_tokens")
    graph.add_conditional_edges("check_tokens", _at_once(after_check))
    graph.add_edge("compress", "check_tokens")
    graph.add_edge("build_prompt", "call_llm")
    graph.add_conditional_edges("call_llm", _at_once(after_model))
    graph.add_edge("run_tools", "build_context")
    graph.add_edge("update_memory", END)
    return graph.compile(checkpointer=checkpointer, name="recuerdo")


def steps_at_most(plan: Plan) -> int:
    """Graph steps of a turn with all its tool rounds, compressions included: bounds its recursion."""
    return _STEPS_PER_TOOL_ROUND * (plan.limits.tool_rounds + 1) + _STEPS_BESIDE


def _bound(node: Node, provide: Provide) -> Callable[..., Awaitable[TurnUpdate]]:
    """A node as LangGraph calls it: state, runtime and config in, a state update out."""

    async def run(state: TurnState, runtime: Runtime[TurnContext], config: RunnableConfig) -> TurnUpdate:
        services = await provide()
        caller = caller_of(runtime.context, config, services)
        turn = (state.get("work") or {}).get("turn")
        if turn and node is not receive:
            # One revision for the whole turn, also where it waited for a person and another is in force by now.
            services = await services.under(caller.tenant, turn.get("revision"))
        return await node(state, Call(caller, services, runtime.stream_writer))

    run.__name__ = node.__name__
    return run


def _at_once(router: Router) -> Callable[[TurnState], Awaitable[str]]:
    """A router on the event loop: LangGraph runs a plain function in a thread, and ours only look at the state."""

    @wraps(router)
    async def route(state: TurnState) -> str:
        return router(state)

    return route


def caller_of(context: TurnContext | None, config: RunnableConfig, services: Services) -> Caller:
    """The caller's identity, from the run's context or ``configurable``; never from the state.

    Raises InputError when no conversation is named.
    """
    given = context or TurnContext()
    configurable = config.get("configurable") or {}
    conversation = given.conversation or configurable.get("thread_id")
    if not conversation:
        raise InputError(sentences("thread_missing"))
    return Caller(
        tenant=given.tenant or configurable.get("tenant") or services.settings.tenant,
        assistant=given.assistant or services.plan.name,
        # An empty name is a caller's mistake, refused further down; it must not become the anonymous session.
        user=given.user if given.user is not None else configurable.get("user"),
        conversation=str(conversation),
        mode=given.mode,
        ticket=configurable.get(TICKET),
    )
