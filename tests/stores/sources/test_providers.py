"""Which sources a plan names, how they are set, and who gives the data."""

import pytest

from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import SourceSettings, read_plan
from recuerdo.stores.sources.historical import HistoricalQuotes
from recuerdo.stores.sources.providers import chosen_sources

PLAN = """
name: mine
language: es
role: Ayudas.
instructions: [Sé breve.]
disclaimer: {es: aviso, en: notice}
"""


def sources_of(text: str) -> dict[str, SourceSettings]:
    return read_plan(f"{PLAN}sources: {text}", "plan").sources


def test_rf_63_a_plan_names_its_sources_or_sets_them() -> None:
    assert sources_of("[profile, quotes]") == {"profile": SourceSettings(), "quotes": SourceSettings()}
    assert sources_of("{quotes: {refresh_seconds: 30, timeout_ms: 500, provider: sample}, profile: }") == {
        "quotes": SourceSettings(refresh_seconds=30, timeout_ms=500, provider="sample"),
        "profile": SourceSettings(),
    }
    assert read_plan(PLAN, "plan").sources == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{quotes: {refresh_seconds: -1}}", "sources.quotes.refresh_seconds: it must be a whole number"),
        ("{quotes: {timeout_ms: 0}}", "in the range 10-30000"),
        ("{quotes: {timeout_ms: soon}}", "in the range 10-30000"),
        ("{quotes: {colour: red}}", "sources.quotes.colour: there is no such field"),
        ("[{quotes: 1}]", "sources: it must be"),
        ("3", "sources: it must be"),
    ],
)
def test_wrong_settings_of_a_source(text: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        sources_of(text)


def test_rf_63_a_plan_chooses_the_provider() -> None:
    table = HistoricalQuotes.of([])
    (chosen,) = chosen_sources({"quotes": SourceSettings()}, [table])
    assert chosen is table
    (sample,) = chosen_sources({"quotes": SourceSettings(provider="sample")}, [table])
    assert isinstance(sample, HistoricalQuotes) and sample.repeats
    with pytest.raises(SettingsError, match="table, sample"):
        chosen_sources({"quotes": SourceSettings(provider="other")}, [table])
    with pytest.raises(SettingsError, match="weather"):
        chosen_sources({"weather": SourceSettings()}, [table])
