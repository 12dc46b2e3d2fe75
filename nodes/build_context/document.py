"""The context document: the loaded context in the shape that RF-36 to RF-45 fix, as plain JSON data."""

from collections.abc import Sequence
from typing import Any

from recuerdo.nodes.build_context.alerts import related_alerts
from recuerdo.nodes.build_context.education import relevant_courses
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.market import NEAR_EVENT
from recuerdo.state.turn import Topic
from recuerdo.stores.sources.rows import Alert, CourseProgress

KNOWN_PREFERENCES = ("show_disclaimers", "preferred_timeframe", "favorite_indicators", "notification_style")


def context_document(
    data: Gathered, user: str | None, conversation: str, count: int, summary: str | None, topics: list[Topic]
) -> dict[str, Any]:
    """The whole document, with every value as its row has it.

    ``portfolio``, ``ml_signals``, ``alerts`` (those of the turn: a read alias beside the portfolio's, A-12) and
    ``education`` are there only when they are relevant.
    """
    document: dict[str, Any] = {
        "user": _user(data, user),
        "preferences": _preferences(data),
        "market": _market(data),
        "conversation": {
            "id": conversation,
            "started_at": data.phrasing.local(data.started_at).isoformat() if data.started_at else None,
            "messages_count": count,
            "summary": summary,
            "recent_topics": [topic["label"] for topic in topics],
        },
    }
    if data.concerns_holding:
        document["portfolio"] = _portfolio(data)
    if alerts := related_alerts(data):
        document["alerts"] = _alerts(alerts)
    if courses := relevant_courses(data):
        document["education"] = _education(data, courses)
    if data.signals:
        document["ml_signals"] = {
            signal.symbol: {
                "prediction": signal.prediction,
                "confidence": float(signal.confidence),
                "updated_at": data.phrasing.local(signal.updated_at).isoformat(),
            }
            for signal in data.signals
        }
    return document


def _user(data: Gathered, user: str | None) -> dict[str, Any]:
    profile = data.profile
    if profile is None:
        return {"id": user, "language": data.language, "timezone": data.timezone.key}
    return {
        "id": user,
        "name": profile.name,
        "plan": profile.subscription,
        "risk_profile": profile.risk_profile,
        "experience": profile.experience,
        "language": profile.language,
        "timezone": profile.timezone,
    }


def _preferences(data: Gathered) -> dict[str, Any]:
    """The four known keys at the top, free ones under ``custom`` (A-11)."""
    values = {key: preference.value for key, preference in data.preferences.items()}
    known = {key: values[key] for key in KNOWN_PREFERENCES if key in values}
    custom = {key: value for key, value in values.items() if key not in KNOWN_PREFERENCES}
    return {**known, "custom": custom} if custom else known


def _market(data: Gathered) -> dict[str, Any]:
    local = data.phrasing.local
    market: dict[str, Any] = {"current_time": local(data.now).isoformat(timespec="seconds")}
    if data.market:
        status = data.market
        market["status"] = status.status
        market["next_close"] = local(status.next_close).isoformat() if status.next_close else None
        market["next_open"] = local(status.next_open).isoformat() if status.next_open else None
    horizon = local(data.now).date() + NEAR_EVENT
    market["upcoming_events"] = [
        {"event": event.event, "date": event.date.isoformat(), "impact": event.impact}
        for event in data.events
        if event.date <= horizon
    ]
    if "quotes" in data.unavailable:
        market["data_unavailable"] = data.unavailable["quotes"]
    elif data.quotes:
        market["quotes"] = {
            symbol: {"price": float(quote.price), "as_of": local(quote.as_of).isoformat()}
            for symbol, quote in data.quotes.items()
        }
    return market


def _portfolio(data: Gathered) -> dict[str, Any]:
    positions = [
        {
            "symbol": one.position.symbol,
            "quantity": float(one.position.quantity),
            "avg_price": float(one.position.avg_price),
            "current_pnl": None if one.profit is None else float(one.profit),
        }
        for one in data.holdings
    ]
    away = {"data_unavailable": data.unavailable["positions"]} if "positions" in data.unavailable else {}
    return {"positions": positions, "alerts": _alerts(data.alerts), **away}


def _alerts(alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    return [
        {"symbol": alert.symbol, "condition": alert.condition, "price": float(alert.price)}
        for alert in alerts
    ]


def _education(data: Gathered, courses: Sequence[CourseProgress]) -> list[dict[str, Any]]:
    return [
        {
            "course": course.course,
            "topic": course.topic,
            "percent": float(course.percent),
            "next_lesson": course.next_lesson,
            "updated_at": data.phrasing.local(course.updated_at).isoformat(),
        }
        for course in courses
    ]
