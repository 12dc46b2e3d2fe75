"""Ties a new proposal to the evidence that it rests on, in the database: no piece of it passes through here.

What another proposal rests on stays with that one.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, LiteralString
from uuid import UUID

from psycopg.sql import SQL, Composed, Placeholder

from recuerdo.state.plan import AutoApproveRule, Condition
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.learning_evidence import APPROVED, Window
from recuerdo.stores.postgres.proposals import Link, Tie

_INSERT: LiteralString = """
insert into recuerdo.proposal_evidence (tenant, proposal, evidence, turn_id, approval, at)
select e.tenant, %(proposal)s, e.id, e.turn_id, (e.data ->> 'approval')::uuid, e.at
"""

_ONCE: LiteralString = " on conflict (tenant, evidence) where evidence is not null do nothing"

_USES: LiteralString = """
from recuerdo.evidence e
where e.tenant = %(tenant)s and e.kind = 'tool_used' and e.plan = %(plan)s and e.tool = %(tool)s
    and e.expires_at > %(now)s
"""

_ONE = """
insert into recuerdo.proposal_evidence (tenant, proposal, evidence, turn_id, approval, revision, at)
values (%(tenant)s, %(proposal)s, %(evidence)s, %(turn)s, %(approval)s, %(revision)s, %(at)s)
on conflict (tenant, evidence) where evidence is not null do nothing
"""

# The same as ``AutoApproveRule.allows`` judges of what stands beside the conditions.
_KNOWN: LiteralString = """
 and jsonb_strip_nulls(e.data -> 'arguments') ?& %(names)s::text[]
    and jsonb_strip_nulls(e.data -> 'arguments') - %(names)s::text[] = '{}'::jsonb
    and not exists (select from jsonb_each((e.data -> 'arguments') - %(looked_at)s::text[]) one
        where jsonb_typeof(one.value) not in ('string', 'number', 'null'))
"""

_OPERATORS = {
    "<": SQL("<"),
    "<=": SQL("<="),
    ">": SQL(">"),
    ">=": SQL(">="),
    "==": SQL("="),
    "!=": SQL("<>"),
}


def tie_approved(window: Window, plan: str, rule: AutoApproveRule) -> Tie:
    """To the approved calls that argue for nothing yet and that the rule would have let pass."""

    async def tie(connection: Connection, proposal: UUID) -> None:
        values: dict[str, Any] = {**vars(window), "proposal": proposal, "plan": plan, "tool": rule.tool}
        query = SQL(_INSERT) + SQL(APPROVED) + SQL(" and e.plan = %(plan)s and e.tool = %(tool)s")
        for place, condition in enumerate(rule.conditions):
            query += SQL(" and ") + _holds(condition, place)
            values |= {f"field{place}": condition.field, f"value{place}": _exact(condition.value)}
        values |= {"names": sorted(rule.known), "looked_at": sorted(rule.looked_at)}
        await connection.execute(query + SQL(_KNOWN) + SQL(_ONCE), values)

    return tie


def tie_uses(window: Window, plan: str, tool: str) -> Tie:
    """To the uses of a tool."""

    async def tie(connection: Connection, proposal: UUID) -> None:
        values = {**vars(window), "proposal": proposal, "plan": plan, "tool": tool}
        await connection.execute(SQL(_INSERT) + SQL(_USES) + SQL(_ONCE), values)

    return tie


def tie_one(tenant: str, link: Link) -> Tie:
    """To one piece of evidence, or to a revision."""
    return tie_each(tenant, [link])


def tie_each(tenant: str, links: Sequence[Link]) -> Tie:
    """To these, piece by piece."""

    async def tie(connection: Connection, proposal: UUID) -> None:
        for link in links:
            await connection.execute(_ONE, {**vars(link), "tenant": tenant, "proposal": proposal})

    return tie


def _exact(value: float | str) -> Decimal | str | bool:
    """A number as it is written: as a float the database would round it."""
    return value if isinstance(value, str | bool) else Decimal(str(value))


def _holds(condition: Condition, place: int) -> Composed:
    """The condition as the database judges it, the same as ``Condition.holds``."""
    parts = {
        "field": Placeholder(f"field{place}"),
        "value": Placeholder(f"value{place}"),
        "op": _OPERATORS[condition.op],
    }
    if isinstance(condition.value, bool):
        return SQL(
            "case when jsonb_typeof(e.data -> 'arguments' -> {field}) = 'boolean'"
            " then (e.data -> 'arguments' ->> {field})::boolean {op} {value}::boolean else false end"
        ).format(**parts)
    if isinstance(condition.value, str):
        return SQL(
            "case when jsonb_typeof(e.data -> 'arguments' -> {field}) = 'string'"
            " then (e.data -> 'arguments' ->> {field}) {op} {value}::text else false end"
        ).format(**parts)
    return SQL(
        "case when jsonb_typeof(e.data -> 'arguments' -> {field}) = 'number'"
        " then (e.data -> 'arguments' ->> {field})::numeric {op} {value}::numeric else false end"
    ).format(**parts)
