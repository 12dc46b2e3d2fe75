"""What came of a plan's eval cases when it was tried: passed or not, and what was missing (OR-35).

No reply of a model is kept. Which cases there are stands in the plan itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.governance_audit import AuditAct, GovernanceAudit
from recuerdo.stores.postgres.held.plans import TRIAL, TRIAL_HASH
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import storable, storable_json


@dataclass(frozen=True)
class TriedPlan:
    """What was tried: a revision, or a draft (``revision`` None), by the hash of its document, with which model."""

    plan: str
    revision: int | None
    sha256: str
    model: str


@dataclass(frozen=True)
class CaseResult:
    """What came of one case; ``failures`` says what was expected and did not come, or came all the same."""

    case: str
    passed: bool
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvalRun:
    """All cases of a plan, tried once."""

    id: UUID
    tried: TriedPlan
    at: datetime
    actor: str
    results: tuple[CaseResult, ...]

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The cases that did not pass."""
        return tuple(result for result in self.results if not result.passed)


class EvalRuns:
    """The runs of one tenant. ``keys`` holds the key of the audit."""

    def __init__(self, database: Database, tenant: str, keys: KeyFolder) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant
        self._audit = GovernanceAudit(database, tenant, keys)

    async def add(
        self, tried: TriedPlan, results: Sequence[CaseResult], *, actor: str, at: datetime
    ) -> EvalRun:
        """Keep what came of every case, audited: it is what people go by when they put a revision in force."""
        require_scope(actor=actor)
        require_aware(at)
        run = EvalRun(uuid4(), tried, at, actor, tuple(results))
        async with self._database.tenant(self._tenant) as connection:
            for result in results:
                await connection.execute(
                    "insert into recuerdo.eval_results (tenant, run, case_id, plan, revision, sha256, model, passed,"
                    " failures, at, actor) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                    (
                        self._tenant,
                        run.id,
                        result.case,
                        tried.plan,
                        tried.revision,
                        tried.sha256,
                        storable(tried.model),
                        result.passed,
                        Jsonb(storable_json(list(result.failures))),
                        at,
                        actor,
                    ),
                )
            await self._note(connection, run)
        return run

    async def _note(self, connection: Connection, run: EvalRun) -> None:
        values = {"tenant": self._tenant, "run": run.id}
        row = await (await connection.execute(TRIAL_HASH, values)).fetchone()
        assert row is not None, "an aggregate has one row"
        tried = run.tried
        details = {
            "run": str(run.id),
            "revision": f"r{tried.revision}" if tried.revision is not None else "draft",
            "cases": len(run.results),
            "failed": len(run.failed),
            TRIAL: row["hash"],
        }
        act = AuditAct(run.at, run.actor, "plan.tried", tried.plan, after=tried.sha256, details=details)
        await self._audit.append(connection, act)

    async def newest(self, plan: str, sha256: str) -> EvalRun | None:
        """The newest run of exactly this revision or draft; None: it was never tried."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(_Row))
            await cursor.execute(
                "select run, case_id as case, plan, revision, sha256, model, passed, failures, at, actor"
                " from recuerdo.eval_results where tenant = %(tenant)s and run = (select run from"
                "  recuerdo.eval_results where tenant = %(tenant)s and plan = %(plan)s and sha256 = %(sha256)s"
                "  order by at desc, run limit 1) order by case_id",
                {"tenant": self._tenant, "plan": plan, "sha256": sha256},
            )
            rows = await cursor.fetchall()
        return _run(rows) if rows else None


@dataclass(frozen=True)
class _Row:
    run: UUID
    case: str
    plan: str
    revision: int | None
    sha256: str
    model: str
    passed: bool
    failures: list[str]
    at: datetime
    actor: str


def _run(rows: Sequence[_Row]) -> EvalRun:
    first = rows[0]
    tried = TriedPlan(first.plan, first.revision, first.sha256, first.model)
    results = tuple(CaseResult(row.case, row.passed, tuple(row.failures)) for row in rows)
    return EvalRun(first.run, tried, first.at, first.actor, results)
