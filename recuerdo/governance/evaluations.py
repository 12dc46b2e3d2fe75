"""``agent.governance.evaluations``: a plan tried with its eval cases before it is put in force (OR-35)."""

import asyncio
from dataclasses import replace
from hashlib import sha256

import rfc8785

from recuerdo.governance.arguments import checked_instance, checked_revision
from recuerdo.graph.evaluation import try_case
from recuerdo.nodes.call_llm.model import model_name
from recuerdo.nodes.services import Services
from recuerdo.state.errors import InputError
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.stores.plans import PlanOffice, Revision, checked_plan_name
from recuerdo.stores.postgres.eval_cases import EvalRun, EvalRuns, TriedPlan
from recuerdo.stores.postgres.roles import SUPERVISING, Roles

_sentences = load_sentences(__package__, "learning_sentences.yaml")


class Evaluations:
    """Trials of one tenant's plans, with the model of the agent. ``actor`` says who tries or looks.

    Every call raises ScopeError when the actor is neither supervisor nor owner, SettingsError when a revision is
    missing or refused, InputError for an argument that is none. A revision is its number, or its text such as "r8".
    """

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._roles = Roles(services.database, tenant, services.keys)
        self._runs = EvalRuns(services.database, tenant, services.keys)
        self._office = PlanOffice(services.database, tenant, services.keys)

    async def run(self, name: str | None = None, number: int | str | None = None, *, actor: str) -> EvalRun:
        """Try a revision, None: the one in force, or the draft that the agent runs under, with all its cases.

        Raises InputError when it has none, ModelError or StoreError as a turn does.
        """
        await self._roles.require(actor, SUPERVISING)
        name = self._services.plan.name if name is None else checked_plan_name(name)
        number = None if number is None else checked_revision(number)
        if number is None and self._services.revision is None and name == self._services.plan.name:
            return await self.run_draft(self._services.plan, actor=actor)
        _, revision = await self._office.read(name, number)
        tried = TriedPlan(name, revision.number, revision.sha256, self._model)
        return await self._run(revision.plan, revision, tried, actor)

    async def run_draft(self, draft: Plan, *, actor: str) -> EvalRun:
        """Try a draft before it is compiled. Raises as :meth:`run` does."""
        await self._roles.require(actor, SUPERVISING)
        checked_instance("draft", draft, Plan)
        document = await asyncio.to_thread(rfc8785.dumps, draft.model_dump(mode="json"))
        tried = TriedPlan(draft.name, None, sha256(document).hexdigest(), self._model)
        return await self._run(draft, None, tried, actor)

    async def newest(self, revision: Revision, *, actor: str) -> EvalRun | None:
        """What came of the last trial of a revision; None: it was never tried."""
        await self._roles.require(actor, SUPERVISING)
        checked_instance("revision", revision, Revision)
        return await self._runs.newest(revision.plan.name, revision.sha256)

    async def before_activation(self, revision: Revision, *, actor: str) -> Sentence | None:
        """What speaks against putting a revision in force: cases that it fails, or that nobody has tried."""
        return objection(revision, await self.newest(revision, actor=actor))

    @property
    def _model(self) -> str:
        return model_name(self._services.model) or type(self._services.model).__name__

    async def _run(self, plan: Plan, revision: Revision | None, tried: TriedPlan, actor: str) -> EvalRun:
        if not plan.eval_cases:
            raise InputError(_sentences("no_cases", plan=plan.name))
        services = replace(self._services.in_force.equip(self._services, plan), revision=revision)
        results = [await try_case(services, case, self._tenant, plan.name) for case in plan.eval_cases]
        return await self._runs.add(tried, results, actor=actor, at=self._services.clock())


def objection(revision: Revision, newest: EvalRun | None) -> Sentence | None:
    """What the newest trial of a revision, or that there is none, says against putting it in force."""
    cases = revision.plan.eval_cases
    if not cases or (newest and not newest.failed):
        return None
    values: dict[str, object] = {"revision": revision.reference, "cases": len(cases)}
    if newest is None:
        return _sentences("eval_never", plan=revision.plan.name, label=revision.label, **values)
    names = ", ".join(result.case for result in newest.failed)
    return _sentences("eval_failed", failed=len(newest.failed), names=names, **values)
