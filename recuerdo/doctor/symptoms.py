"""The five symptoms of the customers' questions, each with what to check, first things first (seed 001)."""

import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from recuerdo.doctor.finding import Finding, finding, sentences
from recuerdo.doctor.patient import Patient
from recuerdo.nodes.run_tools.key_events import KEY_EVENT_TOOLS
from recuerdo.nodes.run_tools.key_events.arguments import refusal
from recuerdo.nodes.run_tools.requested import UNREADABLE
from recuerdo.state.folding import comparable, plain
from recuerdo.state.key_events import SEVERITIES, tool_conditions
from recuerdo.state.rounds import is_answered, split_rounds
from recuerdo.stores.postgres.diagnosis import event_facts, tool_arguments
from recuerdo.stores.postgres.key_events import OperatorEvents, OperatorFilter
from recuerdo.stores.postgres.turns import StoredMessage, TurnLog

UNRESOLVED = 50
"""Ids of session-scoped events that are told at most."""

NEWEST_MESSAGES = 500
"""Messages of a conversation in which calls of tools are looked for."""

MOST_FULL_CONTEXT = 5
"""The greatest value of full context (LA-11)."""


async def no_last_round(patient: Patient) -> Sequence[Finding]:
    """ "It does not remember the last round" (LA-6)."""
    return [_short_term(patient), _rounds(patient), _preview(patient), *_conversation(patient)]


async def tool_forgotten(patient: Patient) -> Sequence[Finding]:
    """ "It forgot which tool it called" (LA-16)."""
    rounds = patient.plan.memory.full_context.rounds
    ago = await _called_ago(patient)
    # Those that a larger value would bring back.
    out_of_it = [one for one in ago if rounds < one <= MOST_FULL_CONTEXT]
    return [
        finding("full_context", rounds > 0 and not out_of_it, rounds),
        *([finding("tools_called", not out_of_it, ago, rounds=rounds)] if ago else []),
        _short_term(patient),
        _preview(patient),
        *await _dropped_traces(patient),
        *_conversation(patient),
    ]


async def event_not_found(patient: Patient) -> Sequence[Finding]:
    """ "The event was created but is not found" (LA-33)."""
    return [
        await _identity(patient),
        *_conditions(patient, but="agent_type"),
        *await _events(patient),
        _extraction(patient),
        _preview(patient),
    ]


async def event_tools_missing(patient: Patient) -> Sequence[Finding]:
    """ "The event tools do not appear": each condition as met or not (LA-27, IM-11)."""
    return [*_conditions(patient), _preview(patient)]


async def event_parameter_error(patient: Patient) -> Sequence[Finding]:
    """ "Creating an event gives a parameter error" (LA-30, LA-31)."""
    names = [kind.name for kind in patient.plan.key_events.types]
    calls = await _calls(patient, "create_key_event")
    wrong = dict.fromkeys(_given(calls, "event_type", names))
    severities = dict.fromkeys(_given(calls, "severity", SEVERITIES))
    refused = await _refused(patient)
    used = [{"used": kind, "nearest": _nearest(kind, names)} for kind in wrong]
    return [
        finding("type_used", not used, used, types=_quoted(names)),
        finding("dictionary", bool(names), names),
        finding("severity_used", not severities, list(severities), words=_quoted(SEVERITIES)),
        finding("arguments_refused", not refused, refused),
    ]


SYMPTOMS: Final[dict[str, Callable[[Patient], Awaitable[Sequence[Finding]]]]] = {
    "no_last_round": no_last_round,
    "tool_forgotten": tool_forgotten,
    "event_not_found": event_not_found,
    "event_tools_missing": event_tools_missing,
    "event_parameter_error": event_parameter_error,
}


def _short_term(patient: Patient) -> Finding:
    enabled = patient.plan.memory.short_term.enabled
    return finding("short_term", enabled, enabled)


def _rounds(patient: Patient) -> Finding:
    rounds = patient.plan.memory.short_term.rounds
    return finding("rounds", True, rounds)


def _preview(patient: Patient) -> Finding:
    return finding("preview", patient.mode == "live", patient.mode)


def _conversation(patient: Patient) -> list[Finding]:
    """Whether the conversation is the one that the user means, and whether its last turn ended well."""
    facts = patient.facts
    if facts is None:
        return []
    same = facts.assistant == patient.assistant and facts.user == patient.user
    whose = {"assistant": facts.assistant, "user": facts.user, "turns": facts.turns}
    return [
        finding("conversation", same and facts.turns > 0, whose),
        finding("last_turn", facts.last_status in ("done", None), facts.last_status),
    ]


async def _dropped_traces(patient: Patient) -> list[Finding]:
    """Whether the newest request had to leave a trace out for its token limit."""
    if patient.conversation is None or patient.facts is None:
        return []
    log = TurnLog(patient.services.database, patient.tenant)
    record = await log.newest_record(patient.conversation, patient.facts.user)
    steps = (record or {}).get("steps", [])
    dropped = sorted({step["block"] for step in steps if step["block"].startswith("tool_trace")})
    return [finding("traces_dropped", not dropped, dropped)]


async def _calls(patient: Patient, tool: str) -> list[dict[str, Any]]:
    return await tool_arguments(
        patient.services.database, patient.tenant, patient.assistant, tool, patient.conversation
    )


async def _refused(patient: Patient) -> list[dict[str, str]]:
    """What calls of the three tools were refused for, newest first, each once."""
    settings = patient.plan.key_events
    found: dict[tuple[str, str], None] = {}
    for tool in KEY_EVENT_TOOLS:
        for arguments in await _calls(patient, tool):
            if UNREADABLE in arguments:
                found[tool, sentences("arguments_unreadable").en] = None
            elif error := refusal(tool, arguments, settings):
                found[tool, error] = None
    return [{"tool": tool, "error": error} for tool, error in found]


async def _called_ago(patient: Patient) -> list[int]:
    """How many rounds ago the conversation had calls of tools; 1: in the newest one."""
    if patient.conversation is None or patient.facts is None:
        return []
    log = TurnLog(patient.services.database, patient.tenant)
    stored = await log.messages(patient.conversation, patient.facts.user, limit=NEWEST_MESSAGES)
    rounds = split_rounds([_as_said(message) for message in stored])
    finished = [is_answered(messages) for messages in rounds]
    called = [place for place, messages in enumerate(rounds) if any(map(_calls_tools, messages))]
    return sorted({max(sum(finished[place:]), 1) for place in called})


def _as_said(message: StoredMessage) -> AnyMessage:
    match message.role:
        case "user":
            return HumanMessage(message.content)
        case "tool":
            return ToolMessage("", tool_call_id=message.tool_call_id or "")
        case _:
            calls = [{"name": "-", "args": {}, "id": "-"}] if message.tool_calls else []
            return AIMessage(message.content, tool_calls=calls)


def _calls_tools(message: AnyMessage) -> bool:
    return isinstance(message, AIMessage) and bool(message.tool_calls)


async def _identity(patient: Patient) -> Finding:
    """Events of sessions whose user was not identified: only that session finds them, so those of all are told."""
    events = OperatorEvents(patient.services.database, patient.tenant)
    shared = patient.plan.key_events.shared_across_assistants
    which = OperatorFilter(assistant=None if shared else patient.assistant, unresolved=True)
    page = await events.list(which, patient.actor, patient.services.clock(), limit=UNRESOLVED)
    found = [{"id": str(event.id), "session": event.session} for event in page.events]
    return finding("identity", not page.total, {"session_scoped": found, "total": page.total})


def _conditions(patient: Patient, *, but: str = "") -> list[Finding]:
    settings = patient.plan.key_events
    values: dict[str, Any] = {
        "enabled": settings.enabled,
        "types": [kind.name for kind in settings.types],
        "agent_type": patient.plan.agent_type,
    }
    return [
        finding(f"events_{condition.name}", condition.met, values[condition.name])
        for condition in tool_conditions(patient.plan)
        if condition.name != but
    ]


async def _events(patient: Patient) -> list[Finding]:
    """Of a user who is known: what of his is elsewhere, closed, archived, too much for a prompt, or of a lost type."""
    if patient.user is None:
        return []
    settings = patient.plan.key_events
    archived = patient.services.clock() - timedelta(days=settings.closed_days)
    facts = await event_facts(patient.services.database, patient.tenant, patient.user, archived)
    seen = [one for one in facts if settings.shared_across_assistants or one.assistant == patient.assistant]
    elsewhere: dict[str, int] = {}
    for one in facts:
        if one not in seen:
            elsewhere[one.assistant] = elsewhere.get(one.assistant, 0) + one.open + one.closed
    opened = sum(one.open for one in seen)
    closed = {"closed": sum(one.closed for one in seen), "archived": sum(one.archived for one in seen)}
    removed = sorted({one.type for one in seen} - {kind.name for kind in settings.types})
    return [
        finding("events_elsewhere", not elsewhere, elsewhere),
        finding("events_closed", not any(closed.values()), closed, days=settings.closed_days),
        finding("events_many", opened <= settings.injected_max, opened, most=settings.injected_max),
        finding("events_type_removed", not removed, removed),
    ]


def _extraction(patient: Patient) -> Finding:
    """Agents that do not write events themselves have them once the conversation was read (LA-26)."""
    unread = patient.facts.unread if patient.facts else 0
    value = {"agent_type": patient.plan.agent_type, "unread_turns": unread}
    minutes = patient.plan.key_events.extraction.idle_minutes
    return finding("extraction", not unread, value, minutes=minutes)


def _given(calls: Sequence[dict[str, Any]], name: str, allowed: Sequence[str]) -> list[str]:
    """Values of an argument that are none of the allowed ones, newest first."""
    given = [str(call[name]) for call in calls if name in call]
    return [value for value in given if unicodedata.normalize("NFC", value) not in allowed]


def _nearest(used: str, names: Sequence[str]) -> str | None:
    """The type that differs only in case, accents or blanks: what the model meant."""
    return next((name for name in names if _loose(name) == _loose(used)), None)


def _loose(name: str) -> str:
    return "".join(comparable(plain(name)).split())


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words) or "-"
