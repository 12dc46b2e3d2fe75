"""What an agent may do without a person: the plan's rules, narrowed by an emergency stop (IM-52).

A stop acts at once, in a turn that is under way too: so it is read at every gate, not at the turn's beginning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from recuerdo.state.plan import AutoApproveRule, Plan
from recuerdo.stores.postgres.database import Connection, Database


@dataclass(frozen=True)
class EmergencyStop:
    """Since when no rule holds, and who said so; with ``all_tools`` every call waits for a person."""

    all_tools: bool
    at: datetime
    actor: str


@dataclass(frozen=True)
class Autonomy:
    """What holds at this moment. ``stop`` is None in the ordinary case."""

    plan: Plan
    stop: EmergencyStop | None = None

    def waits(self, tool: str) -> bool:
        """Whether calls of ``tool`` need a second person, unless a rule lets them pass."""
        return tool in self.plan.four_eyes or (self.stop is not None and self.stop.all_tools)

    def rule_for(self, tool: str, arguments: Mapping[str, Any]) -> AutoApproveRule | None:
        """The first rule that lets this call pass; under a stop none does."""
        rules = () if self.stop else self.plan.auto_approve_rules
        return next((rule for rule in rules if rule.allows(tool, arguments)), None)


async def read_autonomy(database: Database, tenant: str, plan: Plan) -> Autonomy:
    """What holds now for a turn under ``plan``. Raises StoreError when the database does not answer."""
    async with database.tenant(tenant) as connection:
        return Autonomy(plan, await read_stop(connection, tenant, plan.name))


async def read_stop(connection: Connection, tenant: str, name: str) -> EmergencyStop | None:
    """The stop that is on; None when there is none."""
    cursor = connection.cursor(row_factory=class_row(_StopRow))
    await cursor.execute(
        "select stopped, all_tools, at, actor from recuerdo.plan_stops"
        " where tenant = %s and name = %s order by id desc limit 1",
        (tenant, name),
    )
    row = await cursor.fetchone()
    return EmergencyStop(row.all_tools, row.at, row.actor) if row and row.stopped else None


async def read_stops(connection: Connection, tenant: str) -> dict[str, EmergencyStop]:
    """Every stop that is on, by plan."""
    cursor = connection.cursor(row_factory=class_row(_NamedStopRow))
    await cursor.execute(
        "select distinct on (name) name, stopped, all_tools, at, actor from recuerdo.plan_stops"
        " where tenant = %s order by name, id desc",
        (tenant,),
    )
    rows = await cursor.fetchall()
    return {row.name: EmergencyStop(row.all_tools, row.at, row.actor) for row in rows if row.stopped}


async def add_stop(
    connection: Connection,
    tenant: str,
    name: str,
    *,
    stopped: bool,
    all_tools: bool,
    actor: str,
    at: datetime,
) -> None:
    """Write that a stop is on, or lifted."""
    await connection.execute(
        "insert into recuerdo.plan_stops (tenant, name, stopped, all_tools, at, actor)"
        " values (%s, %s, %s, %s, %s, %s)",
        (tenant, name, stopped, all_tools, at, actor),
    )


@dataclass(frozen=True)
class _StopRow:
    stopped: bool
    all_tools: bool
    at: datetime
    actor: str


@dataclass(frozen=True)
class _NamedStopRow(_StopRow):
    name: str
