"""Step 6 of the turn: write what it leaves behind, then clear the working keys (RF-52 to RF-55, OR-3)."""

import asyncio
from uuid import UUID

from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage

from recuerdo.nodes.build_context.history import shortened, split_present
from recuerdo.nodes.call import Call, Chunk
from recuerdo.nodes.turn_log import log_rows
from recuerdo.nodes.update_memory.learn import Lesson, learn
from recuerdo.nodes.update_memory.record import build_record
from recuerdo.nodes.update_memory.saving import decide_saving, keep_command, with_notices
from recuerdo.nodes.update_memory.topics import update_topics
from recuerdo.nodes.update_memory.window import move_window
from recuerdo.state.rounds import chat_count
from recuerdo.state.turn import TurnState, TurnUpdate, Work
from recuerdo.state.usage import usage_of
from recuerdo.stores.postgres.turns import NewMessage, TurnOutcome
from recuerdo.stores.worker import index_at_once


async def update_memory(state: TurnState, call: Call) -> TurnUpdate:
    """Write history, topics, preferences, symbols, memories and usage; or mark the turn as failed."""
    if state.get("error"):
        return await _close_failed(state, call)
    work = state["work"] or Work()
    _, present = split_present(state["messages"], work["turn"]["message_id"])
    topics, topic = update_topics(state, work, call.services.plan.memory.recent_topics)
    saving = await decide_saving(state, work, await learn(state, work, present, call), call)
    lesson, reply = saving.lesson, with_notices(present[-1], saving.notices, work, call)
    window = await move_window(state, work, call)
    work = Work(**{**work, "usage": [*work.get("usage", []), *lesson.usage, *window.usage]})
    record = build_record(work, call, topic, lesson, window)
    kept = record.model_dump(mode="json")
    await _finish(call, work, [*present[:-1], reply], lesson, kept)
    call.emit(Chunk(type="done", text="", data=kept))
    return {
        "messages": [*(RemoveMessage(id=str(message.id)) for message in window.leaving), reply],
        "summary": window.summary,
        "topics": topics,
        "language": work["turn"]["language"],
        "messages_count": window.messages_count,
        "last_turn": work["turn"]["id"],
        "pending_memories": saving.pending,
        "work": None,
    }


async def _finish(
    call: Call, work: Work, present: list[AnyMessage], lesson: Lesson, record: dict[str, object]
) -> None:
    """One transaction for all of it; vectors follow at once when they can."""
    now = call.services.clock()
    # Tool steps stand in the log already, with their whole results.
    logged = len(present) - 1
    waiting = await call.turns.finish(
        TurnOutcome(
            turn=UUID(work["turn"]["id"]),
            at=now,
            messages=log_rows(present[-1:], now),
            position=logged,
            usage=usage_of(work.get("usage", []), call.services.plan.prices),
            record=record,
            preferences=lesson.preferences,
            symbols=lesson.symbols,
            memories=lesson.memories,
            memory_changes=lesson.changes,
            dropped_preferences=lesson.dropped,
            unfollowed=lesson.unfollowed,
        )
    )
    services = call.services
    await index_at_once(services.database, services.index, services.embedder, waiting)


async def _close_failed(state: TurnState, call: Call) -> TurnUpdate:
    """Mark the turn as failed. What it did stays in the thread: the next turn must know of its actions."""
    work = state.get("work")
    error = state["error"]
    if not work or not error:
        return {"work": None}
    turn = work["turn"]
    _, present = split_present(state["messages"], turn["message_id"])
    partial = work.get("partial", "")
    now = call.services.clock()
    said = [NewMessage(f"{turn['id']}-{len(present)}", "assistant", partial, now)] if partial else []
    usage = usage_of(work.get("usage", []), call.services.plan.prices)
    await call.turns.fail(UUID(turn["id"]), now, error["en"], said, usage)
    await keep_command(turn, call)
    count = state.get("messages_count") or 0
    if error["kind"] == "BudgetError" and len(present) == 1:
        # A message that could not be sent now would stand in the way of every turn to come.
        gone: list[BaseMessage] = [RemoveMessage(id=str(message.id)) for message in present]
        return {"messages": gone, "messages_count": count, "work": None}
    # Short, so that the trace finds room in the next turn; calls and results stay paired.
    trace = await asyncio.to_thread(shortened, present[1:], turn["language"], call.services.counter.count)
    return {"messages": trace, "messages_count": count + chat_count(present), "work": None}
