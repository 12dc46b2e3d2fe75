"""The layout is a setting of the deployment (design section 4)."""

import pytest

from recuerdo.state.errors import SettingsError
from recuerdo.stores.settings import Settings


@pytest.mark.parametrize("layout", ["tail_system", "tail_user", "single"])
def test_a_layout_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    monkeypatch.setenv("RECUERDO_LAYOUT", layout)
    assert Settings.load().layout == layout


def test_the_default_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECUERDO_LAYOUT", raising=False)
    assert Settings.load().layout == "tail_system"


def test_a_layout_that_does_not_exist_is_refused_with_those_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECUERDO_LAYOUT", "tail")
    with pytest.raises(SettingsError) as error:
        Settings.load()
    for said in (error.value.sentence.es, error.value.sentence.en):
        assert "RECUERDO_LAYOUT" in said
        assert "'tail_system', 'tail_user', 'single'" in said
