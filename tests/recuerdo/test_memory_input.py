"""What a caller can get wrong with ``agent.memory``: a short clear error, and nothing is stored (IM-30, IM-43)."""

from typing import Any
from uuid import uuid4

import pytest

from recuerdo.agent import Agent
from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.postgres.memories import NewMemory
from tests.recuerdo.carlos import CARLOS, PREFERENCES
from tests.recuerdo.test_memory import appoint

CARD = "4111 1111 1111 1111"


WRONG_MEMORIES: list[dict[str, Any]] = [
    {"kind": ""},
    {"kind": "  "},
    {"kind": None},
    {"kind": "a\0b"},
    {"kind": "\ud83d"},
    {"kind": "x" * 20_000},
    {"kind": CARD},
    {"language": "zz"},
    {"language": ""},
    {"confidence": "high"},
    {"confidence": float("nan")},
    {"confidence": True},
    {"confidence": 1.1},
    {"metadata": ["a"]},
    {"metadata": {"k": "x" * 100_001}},
    {"text": None},
    {"text": 5},
    {"text": " "},
]


async def test_im_30_a_memory_that_cannot_be_is_refused_by_what_is_wrong(agent: Agent) -> None:
    for wrong in WRONG_MEMORIES:
        with pytest.raises(InputError) as error:
            await agent.memory.remember(**{"text": "Usa tablas cortas", "user": CARLOS, **wrong})
        assert len(str(error.value)) < 200
        assert "4111" not in str(error.value)
    assert await agent.memory.list(user=CARLOS) == []


async def test_im_43_pages_ids_and_questions_that_cannot_be_are_refused(agent: Agent) -> None:
    memory = agent.memory
    kept = await memory.remember("Usa tablas cortas", user=CARLOS)
    for page in ({"limit": -1}, {"offset": -1}, {"limit": 10**30}, {"limit": "5"}, {"limit": None}):
        with pytest.raises(InputError, match="whole number"):
            await memory.list(user=CARLOS, **page)
        with pytest.raises(InputError, match="whole number"):
            await memory.list(user=CARLOS, inactive=True, **page)
    for question in (None, 5, ["x"]):
        with pytest.raises(InputError, match="text"):
            await memory.recall(question, user=CARLOS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="whole number"):
        await memory.recall("tablas", user=CARLOS, limit=-1)
    assert [r.memory.id for r in await memory.recall("tablas\0", user=CARLOS)] == [kept.id]
    for nothing in ("abc", None, 5, "\0"):
        for call in (
            memory.forget(nothing, user=CARLOS),  # type: ignore[arg-type]
            memory.update(nothing, "x", user=CARLOS),  # type: ignore[arg-type]
            memory.confirm(nothing, user=CARLOS),  # type: ignore[arg-type]
            memory.set_active(nothing, False, user=CARLOS),  # type: ignore[arg-type]
            memory.why(nothing, user=CARLOS),  # type: ignore[arg-type]
        ):
            with pytest.raises(InputError, match="no id"):
                await call
    assert await memory.confirm(str(kept.id), user=CARLOS)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        await memory.update(kept.id, None, user=CARLOS)  # type: ignore[arg-type]


WRONG_PREFERENCES: list[tuple[Any, Any]] = [
    ("preferred_timeframe", "zzz"),
    ("preferred_timeframe", "0h"),
    ("preferred_timeframe", 4),
    ("show_disclaimers", "banana"),
    ("show_disclaimers", None),
    ("show_disclaimers", 2),
    ("use_emojis", "maybe"),
    ("favorite_indicators", {"a": 1}),
    ("favorite_indicators", ["RSI", "banana"]),
    ("favorite_indicators", [1]),
    ("favorite_indicators", []),
    ("followed_symbols", ["NOSUCHTHING"]),
    ("notification_style", "loud"),
    ("communication_style", ["brief"]),
    ("response_language", "zz"),
    ("report_currency", "dollars"),
    ("form_of_address", 5),
    ("free_key", "x" * 100_000),
    ("free_key", None),
    ("free_key", ["x"] * 1_000),
    ("k" * 100_000, "x"),
    ("a\0b", "x"),
    (CARD, "x"),
    ("", "x"),
    (None, "x"),
]


async def test_im_43_rf_7_a_preference_takes_only_what_it_can_be(agent: Agent) -> None:
    for key, value in WRONG_PREFERENCES:
        with pytest.raises(InputError) as error:
            await agent.memory.correct_preference(key, value, user=CARLOS)
        assert len(str(error.value)) < 200
    kept = await agent.memory.preferences(user=CARLOS)
    assert {name: one.value for name, one in kept.items()} == PREFERENCES


KEPT_PREFERENCES: list[tuple[str, Any, Any]] = [
    ("preferred_timeframe", "1D", "1d"),
    ("preferred_timeframe", "15 minutos", "15m"),
    ("preferred_timeframe", "weekly", "1w"),
    ("show_disclaimers", "No", False),
    ("show_disclaimers", True, True),
    ("show_disclaimers", "Sí", True),
    ("favorite_indicators", "rsi, bandas de Bollinger", ["RSI", "Bollinger"]),
    ("favorite_indicators", ["MACD", "MACD"], ["MACD"]),
    ("followed_symbols", ["aapl", "brk-b"], ["AAPL", "BRK.B"]),
    ("notification_style", "Brief", "brief"),
    ("response_language", "en", "en"),
    ("report_currency", "eur", "EUR"),
    ("theme", "modo oscuro", "modo oscuro"),
    ("theme", {"mode": "dark"}, {"mode": "dark"}),
]


async def test_im_43_a_preference_is_kept_in_its_usual_form(agent: Agent) -> None:
    for key, value, kept in KEPT_PREFERENCES:
        assert (await agent.memory.correct_preference(key, value, user=CARLOS)).value == kept


async def test_what_is_said_again_of_a_memory_that_is_off_switches_it_on(agent: Agent) -> None:
    kept = await agent.memory.remember("Prefiere pisos altos", user=CARLOS)
    await agent.memory.set_active(kept.id, False, user=CARLOS)
    again = await agent.memory.remember("prefiere pisos altos.", user=CARLOS)
    assert (again.id, again.active, again.text) == (kept.id, True, "Prefiere pisos altos")
    assert [one.id for one in await agent.memory.list(user=CARLOS)] == [kept.id]
    assert await agent.memory.list(user=CARLOS, inactive=True) == []
    why = await agent.memory.why(kept.id, user=CARLOS)
    assert why is not None
    assert [entry.action for entry in why.audit] == ["added", "deactivated", "activated", "confirmed"]


async def test_fault_4_what_is_new_in_the_metadata_is_kept_with_the_same_words(agent: Agent) -> None:
    memory = agent.memory
    kept = await memory.remember("Prefiere pisos altos", user=CARLOS, metadata={"tags": ["a"], "n": 1})
    again = await memory.remember("Prefiere pisos altos", user=CARLOS, metadata={"n": 2, "card": CARD})
    assert (again.id, again.created_at) == (kept.id, kept.created_at)
    assert again.metadata == {"tags": ["a"], "n": 2, "card": "[***]"}
    plain = await memory.remember("Prefiere pisos altos", user=CARLOS)
    assert plain.metadata == again.metadata
    # Only a supervisor changes what is published.
    await appoint(agent)
    await memory.publish(kept.id, actor="sara", reason="lo pidió")
    assert (await memory.remember("Prefiere pisos altos", user=CARLOS)).id == kept.id
    with pytest.raises(ScopeError, match="published"):
        await memory.remember("Prefiere pisos altos", user=CARLOS, metadata={"n": 3})


async def test_c_16_a_preference_learnt_under_a_name_that_cannot_be_is_refused_by_the_store(
    agent: Agent,
) -> None:
    """What holds for every writer is enforced in the store, and an unknown memory is not there."""
    from recuerdo.stores.postgres.preferences import PreferenceChange

    preferences = agent.memory._preferences
    with pytest.raises(InputError, match="sensitive"):
        await preferences.set(CARLOS, PreferenceChange(CARD, "x", "x", None, "es"), agent.services.clock())
    with pytest.raises(InputError, match="sensitive"):
        await agent.memory._kept.add(CARLOS, NewMemory(CARD, "x", "es"), agent.services.clock())
    assert not await agent.memory.forget(uuid4(), user=CARLOS)
