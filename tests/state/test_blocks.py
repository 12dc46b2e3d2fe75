"""Blocks count what they hold and their ladders only go down (C-3, RF-24)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from recuerdo.state.blocks import (
    MESSAGE_OVERHEAD,
    REMOVED,
    Rung,
    current,
    make_block,
    message_text,
    message_tokens,
    messages_rung,
    text_rung,
    total_tokens,
)

ladders = st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=7).map(
    lambda pairs: [
        Rung(name=str(place), text="", messages=[], tokens=tokens, floor=floor)
        for place, (tokens, floor) in enumerate(pairs)
    ]
)


@given(ladders)
def test_a_ladder_starts_rich_and_only_goes_down(ladder: list[Rung]) -> None:
    block = make_block("b", "high", "turn", ladder, source="test")
    tokens = [rung["tokens"] for rung in block["rungs"]]
    assert current(block)["name"] == "0"
    assert all(above > below for above, below in pairwise(tokens))
    assert tokens[-1] == min(rung["tokens"] for rung in ladder)


@given(ladders)
def test_c_3_a_floor_that_saves_nothing_marks_the_rung_above(ladder: list[Rung]) -> None:
    block = make_block("b", "high", "turn", ladder, source="test")
    first = next((place for place, rung in enumerate(ladder) if rung["floor"]), None)
    marked = [rung for rung in block["rungs"] if rung["floor"]]
    if first is None:
        assert not marked
    else:
        assert marked[0]["tokens"] == min(rung["tokens"] for rung in ladder[: first + 1])


def test_rf_56_a_critical_block_has_one_rung() -> None:
    rungs = [text_rung("full", "a b c", len), text_rung("short", "a", len), REMOVED]
    block = make_block("message", "critical", "message", rungs, source="user")
    assert [rung["name"] for rung in block["rungs"]] == ["full"]


def test_a_text_is_counted_with_the_newline_that_joins_it() -> None:
    assert text_rung("full", "abc", len)["tokens"] == 4
    assert text_rung("none", "", len)["tokens"] == 0


def test_rf_34_a_message_is_counted_as_it_is_sent() -> None:
    call = {"name": "note", "args": {"text": '"ñ"'}, "id": "c1"}
    function = r'{"name": "note", "arguments": "{\"text\": \"\\\"ñ\\\"\"}"}'
    sent = f'[{{"id": "c1", "type": "function", "function": {function}}}]'
    assert message_text(AIMessage("Miro", tool_calls=[call])) == f"Miro\n{sent}"
    assert message_text(AIMessage("", tool_calls=[call])) == sent
    assert message_tokens(AIMessage("Miro", tool_calls=[call]), len) == 4 + len(sent) + MESSAGE_OVERHEAD
    assert message_text(ToolMessage("listo", tool_call_id="c1")) == "listo\nc1"
    assert message_text(HumanMessage([{"type": "text", "text": "hola"}])) == "hola"


def test_verbatim_messages_and_their_summary_are_counted_together() -> None:
    messages: list[AnyMessage] = [HumanMessage("abc"), ToolMessage("de", tool_call_id="c1")]
    rung = messages_rung("verbatim", messages, len, text="summary")
    assert rung["tokens"] == 3 + 2 + len("c1") + 2 * MESSAGE_OVERHEAD + len("summary\n")
    assert messages_rung("verbatim", [], len)["tokens"] == 0


def test_rf_24_the_whole_request_is_the_rungs_in_use_and_the_overhead() -> None:
    rungs = [text_rung("full", "abcdef", len), text_rung("short", "ab", len), REMOVED]
    block = make_block("b", "low", "turn", rungs, source="test", ids=iter(["m1"]))
    assert total_tokens([block, block], 10) == 24
    assert total_tokens([{**block, "rung": 1}, {**block, "rung": 2}], 10) == 13
    assert block["ids"] == ["m1"]
