"""The factor between our token count and the provider's, kept for each family of models (A-8)."""

from typing import Self

from recuerdo.state.counting import learnt_factor
from recuerdo.stores.postgres.database import Database

_SMALLEST_CHANGE = 0.001
"""A fall below it moves the limits by a few tokens: not worth a write."""

_INSERT = """
insert into recuerdo.token_factors (family, factor, updated_at) values (%(family)s, 1, clock_timestamp())
on conflict do nothing
"""


class TokenFactor:
    """The factor of the model in use, at least 1.

    What one process learns the others take up when they learn, or when they open. A model without a name has
    no family to learn for: its factor stays 1.
    """

    def __init__(self, database: Database, family: str | None, value: float = 1.0) -> None:
        self._database = database
        self.family = family
        self.value = value

    @classmethod
    async def load(cls, database: Database, family: str | None) -> Self:
        """The factor as learnt until now. Raises StoreError when the database does not answer."""
        async with database.connection() as connection:
            cursor = await connection.execute(
                "select factor from recuerdo.token_factors where family = %s", (family,)
            )
            row = await cursor.fetchone()
        return cls(database, family, row["factor"] if row else 1.0)

    async def learn(self, estimated: int, reported: int) -> None:
        """Learn from one call's input tokens: our count and the provider's.

        Raises StoreError when the database does not answer; this process has learnt nevertheless.
        """
        learnt = learnt_factor(self.value, estimated, reported)
        if self.family is None or 0 <= self.value - learnt < _SMALLEST_CHANGE:
            return
        self.value = learnt
        self.value = await self._learn_together(self.family, estimated, reported)

    async def _learn_together(self, family: str, estimated: int, reported: int) -> float:
        """From the factor that all processes share, one after another."""
        async with self._database.transaction() as connection:
            await connection.execute(_INSERT, {"family": family})
            cursor = await connection.execute(
                "select factor from recuerdo.token_factors where family = %s for update", (family,)
            )
            row = await cursor.fetchone()
            assert row is not None, "written just before"
            factor = learnt_factor(row["factor"], estimated, reported)
            await connection.execute(
                "update recuerdo.token_factors set factor = %s, updated_at = clock_timestamp()"
                " where family = %s",
                (factor, family),
            )
        return factor
