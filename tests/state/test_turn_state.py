"""The working keys of a turn: merged, replaced by the next turn, cleared (OR-3, OR-5)."""

from recuerdo.state.turn import TurnInfo, Work, merge_work


def turn(number: int) -> TurnInfo:
    return TurnInfo(
        id=f"turn-{number}",
        number=number,
        parent=None,
        message_id=f"m{number}",
        now="2025-12-05T15:00:00+00:00",
        language="es",
        mode="live",
        text="hola",
        redacted="hola",
    )


def test_given_keys_replace_old_ones_and_the_rest_stays() -> None:
    old = Work(turn=turn(1), symbols=["AAPL"], tool_rounds=1)
    merged = merge_work(old, Work(tool_rounds=2, intent="price"))
    assert merged == Work(turn=turn(1), symbols=["AAPL"], tool_rounds=2, intent="price")
    assert old == Work(turn=turn(1), symbols=["AAPL"], tool_rounds=1)


def test_or_3_none_clears_all() -> None:
    assert merge_work(Work(turn=turn(1), symbols=["AAPL"]), None) is None
    assert merge_work(None, None) is None


def test_a_new_turn_starts_from_nothing_whatever_a_broken_one_left() -> None:
    broken = Work(turn=turn(1), partial="La acción", usage={"input": 900}, tool_rounds=3)
    assert merge_work(broken, Work(turn=turn(2))) == Work(turn=turn(2))


def test_the_first_keys_need_no_old_ones() -> None:
    assert merge_work(None, Work(symbols=["AAPL"])) == Work(symbols=["AAPL"])
