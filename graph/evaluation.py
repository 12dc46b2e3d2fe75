"""Tries a plan with its eval cases: the whole turn graph, in preview, and no tool that changes anything (OR-35)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from recuerdo.graph.turn import TurnContext, TurnGraph, build_turn_graph, steps_at_most
from recuerdo.nodes.build_context.history import READ_ONLY, split_present
from recuerdo.nodes.services import Services, Toolbox
from recuerdo.state.folding import comparable, plain
from recuerdo.state.plan import EvalCase, Expectation, Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import TurnState
from recuerdo.stores.postgres.eval_cases import CaseResult

sentences = load_sentences(__package__, "evaluation_sentences.yaml")


async def try_case(services: Services, case: EvalCase, tenant: str, assistant: str) -> CaseResult:
    """Send the case's conversation and judge the turn that answers it.

    ``services`` are under the plan that is tried. Nothing is remembered, nobody is asked, and of the tools only those
    that read run; what the model uses is billed. A turn that fails fails the case.
    """
    graph = _trial_graph(_harmless(services))
    thread = f"eval-{uuid4()}"
    config: RunnableConfig = {
        "configurable": {"thread_id": thread},
        "recursion_limit": steps_at_most(services.plan),
    }
    message = HumanMessage(_as_one(case.messages, services.plan.language), id=str(uuid4()))
    state: Any = await graph.ainvoke(
        TurnState(messages=[message]), config, context=TurnContext(None, thread, tenant, assistant, "preview")
    )
    if error := state.get("error"):
        return CaseResult(case.id, False, (f"error: {error['kind']}",))
    _, present = split_present(state["messages"], str(message.id))
    failures = judge(case.expect, present)
    return CaseResult(case.id, not failures, failures)


def _as_one(messages: Sequence[str], language: str) -> str:
    """A preview has no history, so what the user said before stands in front of the last message."""
    *earlier, last = messages
    if not earlier:
        return last
    said = "\n".join(f"- {text}" for text in earlier)
    return sentences("conversation", earlier=said, last=last).in_language(language)


def judge(expect: Expectation, turn: list[AnyMessage]) -> tuple[str, ...]:
    """What the turn lacks, or has all the same, each as ``says: text``; accents and case do not count."""
    answers = [message for message in turn if isinstance(message, AIMessage)]
    reply = _folded(str(answers[-1].text)) if answers else ""
    called = {call["name"] for answer in answers for call in answer.tool_calls}
    wrong = {
        "says": [text for text in expect.says if _folded(text) not in reply],
        "says_not": [text for text in expect.says_not if _folded(text) in reply],
        "calls": [tool for tool in expect.calls if tool not in called],
        "calls_not": [tool for tool in expect.calls_not if tool in called],
    }
    return tuple(f"{name}: {text}" for name, texts in wrong.items() for text in texts)


def _folded(text: str) -> str:
    return " ".join(comparable(plain(text)).split())


def _trial_graph(services: Services) -> TurnGraph:
    async def provide() -> Services:
        return services

    return build_turn_graph(provide, InMemorySaver())


class _Tried:
    """The plan that is tried is the one in force, for as long as it is tried."""

    async def under(self, services: Services, tenant: str, sha256: str | None) -> Services:
        """The services as they are."""
        return services

    def equip(self, services: Services, plan: Plan) -> Services:
        """The services with another plan and the same tools."""
        return replace(services, plan=plan)


def _harmless(services: Services) -> Services:
    """The same tools as the model sees them; those that change anything only say that they were noted."""
    box = services.toolbox
    tools = {name: tool if _reads_only(tool) else _noted(tool) for name, tool in box.tools.items()}
    return replace(services, toolbox=Toolbox(tools, box.schemas), in_force=_Tried())


def _reads_only(tool: BaseTool) -> bool:
    return bool((tool.metadata or {}).get(READ_ONLY))


def _noted(tool: BaseTool) -> BaseTool:
    async def note(**arguments: Any) -> str:
        return f"This is a trial of the plan: {tool.name} was noted and not run. Go on as if it had worked."

    return StructuredTool.from_function(
        coroutine=note,
        name=tool.name,
        description=tool.description,
        args_schema=tool.tool_call_schema,
        metadata={READ_ONLY: True},
    )
