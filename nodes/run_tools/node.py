"""The tool loop: run what the model asked for and lead back to ``build_context`` (design section 1)."""

import asyncio
from collections.abc import Sequence

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from recuerdo.nodes.build_context.history import split_present
from recuerdo.nodes.call import Call, Chunk
from recuerdo.nodes.run_tools.capping import cap_results
from recuerdo.nodes.run_tools.four_eyes import Passed, pass_four_eyes
from recuerdo.nodes.run_tools.key_events import RESULT
from recuerdo.nodes.run_tools.ledger import Ledger
from recuerdo.nodes.run_tools.memory_tool.edits import memory_edits, texts_before
from recuerdo.nodes.run_tools.memory_tool.in_agent import PROPOSED, scope_of
from recuerdo.nodes.run_tools.requested import Requested, requested_calls
from recuerdo.nodes.run_tools.tools import CALL
from recuerdo.nodes.turn_log import holding_lease, log_messages, run_of
from recuerdo.state.turn import PendingMemory, TurnInfo, TurnState, TurnUpdate, Work
from recuerdo.stores.postgres.tool_calls import ToolCalls

_NOT_KEPT = (
    "hold what cannot be kept: NaN, Infinity, a number beyond 64 bits, a null character or too deep a nesting"
)


async def run_tools(state: TurnState, call: Call) -> TurnUpdate:
    """Run the calls of the newest message side by side; a failure is a result, never the end of the turn.

    Calls that need a second person are settled before any of them runs. The whole results go to the log at once;
    what goes to the model is capped, with a reference to the whole.
    """
    work = state["work"] or Work()
    asked = state["messages"][-1]
    assert isinstance(asked, AIMessage), "the router sends only tool calls here"
    _, present = split_present(state["messages"], work["turn"]["message_id"])
    first = len(present)
    calls = requested_calls(asked, first, work, call)
    passed = await pass_four_eyes(calls, work, call)
    proposed: list[PendingMemory] = []
    before = await texts_before(calls, call)
    async with holding_lease(call, work["turn"]):
        results = await _results(calls, passed, proposed, work, call)
    await log_messages(call, work["turn"], [asked, *results], position=first - 1)
    for result in results:
        call.emit(Chunk(type="tool", text=str(result.name), data={"status": result.status}))
    capped = await asyncio.to_thread(cap_results, results, present, work, call)
    done = Work(
        tool_rounds=work.get("tool_rounds", 0) + 1,
        proposed=[*work.get("proposed", []), *proposed],
        memory_edits=[*work.get("memory_edits", []), *memory_edits(calls, results, before)],
        approvals=[*work.get("approvals", []), *passed.notes],
    )
    return {"messages": capped, "work": _in_the_present(work, done, call) if passed.waited else done}


def _in_the_present(work: Work, done: Work, call: Call) -> Work:
    """Hours may have passed: the turn goes on by the present clock, and so with the present market.

    The whole of it, for a new turn's info clears everything else.
    """
    turn = TurnInfo(**{**work["turn"], "now": call.services.clock().isoformat()})
    return Work(**{**work, **done, "turn": turn})


async def _results(
    calls: Sequence[Requested], passed: Passed, proposed: list[PendingMemory], work: Work, call: Call
) -> list[ToolMessage]:
    live = call.caller.mode == "live"
    ledger = Ledger(
        ToolCalls(call.services.database, call.caller.tenant) if live else None,
        run_of(work, call),
        call.services.clock,
    )
    return await asyncio.gather(*(_run(one, passed, proposed, ledger, call) for one in calls))


async def _run(
    one: Requested, passed: Passed, proposed: list[PendingMemory], ledger: Ledger, call: Call
) -> ToolMessage:
    if why := passed.refused.get(one.id):
        return one.result(why, failed=True)
    if one.tool is None:
        known = ", ".join(sorted(call.services.toolbox.tools)) or "-"
        return one.result(f"There is no tool named {one.name}. Tools: {known}.", failed=True)
    if not one.can_run:
        return one.result(f"The arguments of {one.name} are not valid JSON, or {_NOT_KEPT}.", failed=True)
    config: RunnableConfig = {
        "configurable": {CALL: call, RESULT: one.message_id, PROPOSED: proposed, **scope_of(call)}
    }
    return await ledger.answer(one, config)
