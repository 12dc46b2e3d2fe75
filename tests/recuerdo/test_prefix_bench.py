"""The measurement of what a provider's prefix cache could serve (OR-18, OR-19, known fault 28)."""

import pytest

from benchmarks import prefix


def test_or_18_or_19_the_layouts_repeat_more_than_the_naive_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix, "TURNS", 12)
    figures = prefix.measure(None)
    share = figures["repeated_percent"]
    assert figures["requests"] == 13, "one turn calls a tool"
    assert share["tail_system"] == pytest.approx(share["tail_user"], abs=0.5)
    assert share["tail_system"] > share["single"] > share["naive_memory_and_clock_first"]
    assert share["tail_system"] > 60 > 20 > share["naive_clock_first"]
    assert "market" not in figures["breaks"]["tail_system"]
    assert figures["breaks"]["tail_system"].get("tool trace") == 1
