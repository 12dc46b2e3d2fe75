"""The budget over requests of real texts, counted with the real encoding and recounted as they go over the wire.

A hundred of them in every run; some thousands with ``make test-slow``.
"""

from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from recuerdo.nodes.build_context.history import Past, history_blocks, present_blocks
from recuerdo.nodes.build_context.role import role_blocks
from recuerdo.nodes.build_prompt.layouts import lay_out, overhead
from recuerdo.state.blocks import REMOVED, Block, Tier, current, make_block, text_rung, total_tokens
from recuerdo.state.fit import Budget, fit
from recuerdo.stores.plans import load_plan
from recuerdo.stores.settings import Layout
from recuerdo.stores.tokens import TokenCounter
from tests.state import generated  # noqa: F401  (its Hypothesis profile)
from tests.wire import wire_tokens

PLAN = load_plan("trading")
LIMITS = Budget(PLAN.limits.compress_above, PLAN.limits.max_input)
RANK: dict[Tier, int] = {"low": 0, "medium": 1, "high": 2}
count = TokenCounter().count

samples = st.sampled_from(
    (
        "Mi objetivo es ganar un 10% anual; el stop-loss de AAPL está en 170,50. ",
        "The portfolio is down 2.35 % today, mostly because of TSLA. ",
        "市场今天开放，苹果公司的股价上涨了百分之一。",
        "📈🚀👩‍👩‍👧‍👦💸 ",
        "مرحبا كيف حال السوق اليوم؟ ",
        '{"symbol": "AAPL", "price": 185.5, "levels": [1, 2, 3]} ',
        "0123456789 ",
        "\n\n  \t",
    )
)
texts = st.tuples(samples, st.integers(0, 40)).map(lambda made: made[0] * made[1])
long_texts = st.tuples(samples, st.integers(0, 900)).map(lambda made: made[0] * made[1])
giants = st.tuples(samples, st.integers(500, 1500)).map(lambda made: made[0] * made[1])
parts = st.lists(st.tuples(st.sampled_from(sorted(RANK)), texts), max_size=40)
rounds = st.lists(st.tuples(texts, texts), max_size=9)
tool_results = st.lists(st.lists(long_texts, min_size=1, max_size=3), max_size=3)
tool_counts = st.one_of(st.just(0), st.integers(1, 30))
questions = st.one_of(texts, texts, texts, giants).map(lambda text: text if text.strip() else "¿Y?")


def schemas(number: int) -> list[dict[str, Any]]:
    """Schemas of so many tools, as they are sent."""
    about = {"type": "object", "properties": {"symbol": {"type": "string", "description": "A symbol."}}}
    named = (
        {"name": f"tool_{place}", "description": "Looks up.", "parameters": about} for place in range(number)
    )
    return [{"type": "function", "function": function} for function in named]


def conversation(
    said: Sequence[tuple[str, str]], question: str, steps: Sequence[Sequence[str]]
) -> list[AnyMessage]:
    """Finished rounds, then the question with its tool steps."""
    thread: list[AnyMessage] = []
    for place, (asked, answered) in enumerate(said):
        thread += [HumanMessage(asked or "-", id=f"q{place}"), AIMessage(answered or "-", id=f"a{place}")]
    thread.append(HumanMessage(question, id="now"))
    for place, results in enumerate(steps):
        ids = [f"c{place}-{number}" for number in range(len(results))]
        calls = [
            {"name": "look_up", "args": {"text": "ñ" * 9}, "id": one, "type": "tool_call"} for one in ids
        ]
        thread.append(AIMessage("", id=f"s{place}", tool_calls=calls))
        thread += [
            ToolMessage(text, tool_call_id=one, name="look_up", id=f"r{one}")
            for one, text in zip(ids, results, strict=True)
        ]
    return thread


def blocks_of(made: Sequence[tuple[Tier, str]], thread: list[AnyMessage], present_from: int) -> list[Block]:
    ladders = [
        make_block(
            f"part {place}",
            tier,
            "turn",
            [
                text_rung("full", text, count),
                text_rung("half", text[: len(text) // 2], count, floor=True),
                REMOVED,
            ],
            source="test",
            order=place % 4,
        )
        for place, (tier, text) in enumerate(made)
        if text
    ]
    past = Past(thread[:present_from], "", "es")
    return [
        *role_blocks(PLAN, count),
        *history_blocks(past, PLAN, count),
        *ladders,
        *present_blocks(thread[present_from:], "es", count),
    ]


def check(
    made: Sequence[tuple[Tier, str]],
    said: Sequence[tuple[str, str]],
    question: str,
    steps: Sequence[Sequence[str]],
    tools: int,
    layout: Layout,
) -> None:
    thread = conversation(said, question, steps)
    blocks = blocks_of(made, thread, 2 * len(said))
    offered = schemas(tools)
    fixed = overhead(PLAN, offered, count, layout)
    fitted = fit(blocks, fixed, LIMITS)
    sent = lay_out(fitted.blocks, thread, PLAN, layout)

    assert wire_tokens(sent, count, offered) <= fitted.tokens == total_tokens(fitted.blocks, fixed)
    least = fixed + sum(block["rungs"][-1]["tokens"] for block in blocks)
    assert fitted.tokens <= LIMITS.limit or fitted.tokens == least
    assert str(sent[-1 if not steps else _place(sent)].text).endswith(question)
    kept = [block for block in fitted.blocks if block["tier"] == "critical"]
    assert [current(block) for block in kept] == [b["rungs"][0] for b in blocks if b["tier"] == "critical"]
    within_floors = [step for step in fitted.steps if step["reason"].endswith(str(LIMITS.target))]
    ranks = [RANK[step["tier"]] for step in within_floors]
    assert ranks == sorted(ranks)
    tighter = fit(blocks, fixed, Budget(LIMITS.target // 2, LIMITS.limit // 2))
    assert all(a["rung"] <= b["rung"] for a, b in zip(fitted.blocks, tighter.blocks, strict=True))


def _place(sent: Sequence[AnyMessage]) -> int:
    """Where the newest words of the user stand."""
    return max(place for place, message in enumerate(sent) if isinstance(message, HumanMessage))


requests = given(parts, rounds, questions, tool_results, tool_counts, st.sampled_from(get_args(Layout)))


@requests
def test_rf_34_c_3_no_request_of_real_texts_is_over_the_limit(
    made: list[tuple[Tier, str]],
    said: list[tuple[str, str]],
    question: str,
    steps: list[list[str]],
    tools: int,
    layout: Layout,
) -> None:
    check(made, said, question, steps, tools, layout)


@pytest.mark.slow
@settings(max_examples=3000)
@requests
def test_rf_34_c_3_thousands_of_them(
    made: list[tuple[Tier, str]],
    said: list[tuple[str, str]],
    question: str,
    steps: list[list[str]],
    tools: int,
    layout: Layout,
) -> None:
    check(made, said, question, steps, tools, layout)
