"""The learnt factor outlives the process and is shared by all (A-8)."""

import pytest

from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.token_factors import TokenFactor


async def test_a_8_a_model_that_nothing_is_known_of_has_factor_1(database: Database) -> None:
    assert (await TokenFactor.load(database, "new-model")).value == 1.0


async def test_a_8_what_was_learnt_is_there_at_the_next_opening(database: Database) -> None:
    factor = await TokenFactor.load(database, "m")
    await factor.learn(1000, 1150)
    assert factor.value == pytest.approx(1.15)
    assert (await TokenFactor.load(database, "m")).value == factor.value
    assert (await TokenFactor.load(database, "other")).value == 1.0


async def test_a_8_processes_learn_from_what_all_have_learnt(database: Database) -> None:
    one, other = await TokenFactor.load(database, "m"), await TokenFactor.load(database, "m")
    await one.learn(1000, 1200)
    await other.learn(1000, 1100)
    assert other.value == pytest.approx(1.195)
    assert (await TokenFactor.load(database, "m")).value == other.value


async def test_a_8_a_small_fall_is_not_written_and_any_rise_is(database: Database) -> None:
    factor = await TokenFactor.load(database, "m")
    await factor.learn(10_000, 11_000)
    await factor.learn(10_000, 10_990)
    assert factor.value == pytest.approx(1.1)
    await factor.learn(10_000, 11_001)
    assert factor.value == pytest.approx(1.1001)


async def test_a_8_a_model_without_a_name_teaches_nothing(database: Database) -> None:
    factor = await TokenFactor.load(database, None)
    await factor.learn(1000, 1500)
    assert factor.value == 1.0
