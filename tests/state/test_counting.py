"""The factor between our token count and a provider's (A-8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recuerdo.state.counting import LARGEST_FACTOR, learnt_factor, model_family

tokens = st.integers(min_value=0, max_value=200_000)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4.1-mini", "gpt-4.1-mini"),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"),
        ("openai/gpt-4o-latest", "gpt-4o"),
        ("qwen2.5:7b-instruct-q4_K_M", "qwen2.5"),
        ("claude-sonnet@20250929", "claude-sonnet"),
    ],
)
def test_a_8_versions_of_a_model_share_a_family(model: str, family: str) -> None:
    assert model_family(model) == family


@given(st.floats(1, LARGEST_FACTOR), tokens, tokens)
def test_a_8_the_factor_stays_between_one_and_the_largest(factor: float, ours: int, theirs: int) -> None:
    assert 1.0 <= learnt_factor(factor, ours, theirs) <= LARGEST_FACTOR


def test_a_8_a_higher_report_counts_at_once() -> None:
    assert learnt_factor(1.0, 1000, 1150) == pytest.approx(1.15)


def test_a_8_a_lower_report_counts_slowly() -> None:
    factor = learnt_factor(1.15, 1000, 1000)
    assert factor == pytest.approx(1.1425)


@pytest.mark.parametrize(("ours", "theirs"), [(0, 1000), (1000, 0), (1000, 2001)])
def test_a_8_nonsense_is_not_learnt(ours: int, theirs: int) -> None:
    assert learnt_factor(1.05, ours, theirs) == 1.05
