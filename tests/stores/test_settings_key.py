"""The key as people paste it."""

import pytest

from recuerdo.state.errors import SettingsError
from recuerdo.stores.settings import Settings


@pytest.mark.parametrize("pasted", ["sk-good", " sk-good ", "sk-good\r", "\tsk-good\n"])
def test_blanks_around_a_key_do_not_count(monkeypatch: pytest.MonkeyPatch, pasted: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", pasted)
    key = Settings.load().openai_api_key
    assert key is not None and key.get_secret_value() == "sk-good"


@pytest.mark.parametrize("pasted", ["sk-ñ", "sk\x01good", "sk-“good”"])
def test_what_cannot_be_a_key_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, pasted: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", pasted)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as refused:
        Settings.load()
    assert pasted not in refused.value.sentence.es + refused.value.sentence.en
