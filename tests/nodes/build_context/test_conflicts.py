"""Which memories contradict a rule of a pack (OR-1, IM-54)."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from recuerdo.nodes.build_context.conflicts import find_conflicts, with_notes
from recuerdo.stores.packs import Pack, PackFile
from recuerdo.stores.postgres.memories import StoredMemory

NOW = datetime(2025, 12, 5, tzinfo=UTC)
RULES = Pack.of(
    "normas",
    [
        PackFile(
            "estancia.md",
            "# Estancia\n- Check-in: a partir de las 15:00.\n- La hora de salida (check-out) es a las 11:00.\n"
            "- Desayuno: 07:30 a 10:30.\n- Descuento máximo: 20 %.\n- Mascotas: 15.00 EUR por noche.\n",
        ),
        PackFile("gym.yaml", "pool_closes: at 10 pm\nminimum_age: 16 years\n"),
    ],
)


def remembered(text: str) -> StoredMemory:
    values: dict[str, Any] = dict.fromkeys(StoredMemory.__dataclass_fields__)
    return StoredMemory(**{**values, "id": uuid4(), "text": text, "created_at": NOW, "updated_at": NOW})


def verdict(text: str) -> tuple[str, str] | None:
    found = find_conflicts([remembered(text)], [RULES])
    return (found[0].memory_says, found[0].rule_says) if found else None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("El check-out es a las 12:00", ("12:00", "11:00")),
        ("check out: 12:00", ("12:00", "11:00")),
        ("Acordamos el check-out a las 12:30 con Ana", ("12:30", "11:00")),
        ("Guest may check-out at 1 pm", ("13:00", "11:00")),
        ("EL CHECK–OUT ES A LAS 12:00", ("12:00", "11:00")),
        ("Su check-in es a las 13:00", ("13:00", "15:00")),
        ("Descuento del 25 % para él", ("25 %", "20 %")),
        ("Mascotas: 20 EUR por noche", ("20 eur", "15 eur")),
        ("pool closes at 11 pm", ("23:00", "22:00")),
    ],
)
def test_im_54_another_value_for_the_same_thing_is_a_conflict(text: str, says: tuple[str, str]) -> None:
    assert verdict(text) == says


@pytest.mark.parametrize(
    "text",
    [
        "El check-out es a las 11:00",
        "El check-out es a las 11.00 h",
        # Within a bound, and within a range.
        "Su check-in es a las 16:00",
        "Descuento del 10 %",
        "Su desayuno es a las 8:00",
        # Of something else.
        "La cena es a las 21:00",
        "Vende AAPL a las 12:00",
        "Ana llegó a las 12:00 y preguntó por el check-out",
        "La comisión es del 25 %",
        "Prefiere el check-out tarde",
        "",
    ],
)
def test_im_54_the_same_value_or_another_thing_is_none(text: str) -> None:
    assert verdict(text) is None


def test_or_1_the_memory_is_said_with_the_rule_that_prevails() -> None:
    wrong, right = remembered("El check-out es a las 12:00"), remembered("Le gusta la planta baja")
    conflicts = find_conflicts([wrong, right], [RULES])
    spanish, plain = with_notes([wrong, right], conflicts, "es")
    assert plain == right
    assert spanish.text.startswith(wrong.text) and "prevalece la norma" in spanish.text
    assert RULES.reference in spanish.text and "11:00" in spanish.text
    (english, _) = with_notes([wrong, right], conflicts, "en")
    assert "the rule prevails" in english.text


def test_im_54_without_packs_there_is_no_conflict() -> None:
    assert find_conflicts([remembered("El check-out es a las 12:00")], []) == []
