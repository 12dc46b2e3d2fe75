"""In whose name the tools run: the agent's own caller, or what another agent's config says."""

from typing import Any, Protocol
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException

from recuerdo.nodes.call import Call
from recuerdo.nodes.run_tools.key_events.tools import CALL_ID, EventScope, ScopeOf, make_tools
from recuerdo.nodes.run_tools.tools import CALL
from recuerdo.nodes.services import Clock, system_clock
from recuerdo.state.key_events import Origin, Owner
from recuerdo.state.plan import Plan
from recuerdo.stores.memory_store.events import KeyEvents
from recuerdo.stores.postgres.key_events import change_key

RESULT = "recuerdo_result"
"""Key in ``configurable`` under which a tool of the agent's finds the id that its result will have."""


class EventStore(Protocol):
    """What the tools need of a store: any of ours, the one in memory included."""

    def events(self, assistant: str, *, shared: bool = ..., closed_days: int = ...) -> KeyEvents:
        """The key events of an assistant of the store's tenant."""
        ...


async def agent_scope(config: RunnableConfig) -> EventScope:
    """The scope of a call inside the agent: its caller's. A preview has no key events (C-14)."""
    configurable = config.get("configurable", {})
    call: Call = configurable[CALL]
    caller = call.caller
    if caller.mode == "preview":
        raise ToolException("There are no key events in preview.")
    result: str = configurable[RESULT]
    return EventScope(
        events=call.events,
        owner=Owner(caller.user, caller.conversation),
        origin=Origin(
            at=call.services.clock(),
            actor=caller.user or caller.conversation,
            session=caller.conversation,
            turn=UUID(result.rpartition("-")[0]),
            # The place of the result in its turn: a call that runs again writes nothing twice.
            key=result,
        ),
    )


def key_event_tools(store: EventStore, plan: Plan, *, clock: Clock = system_clock) -> list[BaseTool]:
    """The three tools over one of our stores, for any LangGraph or LangChain agent (IM-4).

    Whose events comes with the run, in ``config["configurable"]``: ``assistant_id``; ``ad_user_id`` for a user
    who is identified, else ``thread_id`` for the session (LA-32). With both, what the session had before its
    user was known becomes his (A-22). None while the plan's agent type is not ``loop``, its key events are
    switched off or it has no types (LA-27). ``clock`` returns the present instant, aware. An error is the tool's
    answer, 500 characters at most (IM-13).
    """
    return make_tools(plan, _scope_from_config(store, plan, clock))


def _scope_from_config(store: EventStore, plan: Plan, clock: Clock) -> ScopeOf:
    settings = plan.key_events

    async def scope_of(config: RunnableConfig) -> EventScope:
        configurable = config.get("configurable") or {}
        assistant, user = configurable.get("assistant_id"), configurable.get("ad_user_id")
        session = configurable.get("thread_id")
        if not assistant or (user is None and not session):
            raise ToolException(
                "Key events need assistant_id, and ad_user_id or thread_id, in config['configurable']."
            )
        events = store.events(
            assistant, shared=settings.shared_across_assistants, closed_days=settings.closed_days
        )
        origin = Origin(
            at=clock(), actor=str(user or session), session=session, key=_key_of(configurable, session)
        )
        if user is not None and session:
            await events.adopt(session, user, origin)
        return EventScope(events, Owner(user, session), origin)

    return scope_of


def _key_of(configurable: dict[str, Any], session: str | None) -> str | None:
    """What a graph's step and the call in it are named, the same when it runs again; None outside a graph.

    The call's own id is not enough: some models begin to count anew in each answer.
    """
    step, call_id = configurable.get("checkpoint_ns"), configurable.get(CALL_ID)
    return change_key(session, step, call_id) if step and call_id else None
