"""Plays the hotel's scenes through the real graph, with a scripted model, in a tenant of their own."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from recuerdo.agent import Agent
from recuerdo.demo.hotel_script import (
    Decides,
    HotelScene,
    HotelScript,
    LearningTitle,
    ScriptedReceptionist,
    load_hotel_script,
)
from recuerdo.opening import open_agent
from recuerdo.state.errors import ScopeError
from recuerdo.state.sentences import Sentence
from recuerdo.stores.plans import Revision
from recuerdo.stores.postgres.approvals import Approval
from recuerdo.stores.postgres.evidence import Evidence
from recuerdo.stores.postgres.hotel import Hotel, Room
from recuerdo.stores.postgres.proposals import Proposal
from recuerdo.stores.postgres.roles import Roles
from recuerdo.turn import Turn

HOTEL_TENANT = "demo-hotel"
PLAN = "hotel"

_ARRIVES_IN = timedelta(days=30)


@dataclass(frozen=True)
class HotelSceneBegan:
    """A scene begins."""

    scene: HotelScene | LearningTitle


@dataclass(frozen=True)
class HotelAsked:
    """The message is on its way."""

    text: str


@dataclass(frozen=True)
class Waits:
    """The turn stops: the call needs a second person."""

    approval: Approval


@dataclass(frozen=True)
class Refused:
    """Somebody may not decide."""

    actor: str
    why: Sentence


@dataclass(frozen=True)
class Decided:
    """Somebody has decided, and the turn goes on."""

    decides: Decides


@dataclass(frozen=True)
class HotelAnswered:
    """The turn is over."""

    turn: Turn


@dataclass(frozen=True)
class Kept:
    """The evidence of this run, oldest first."""

    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Proposed:
    """The Learning Hub has found a rule."""

    proposal: Proposal


@dataclass(frozen=True)
class Agreed:
    """Somebody has approved the proposal: it acts with the next revision."""

    actor: str


@dataclass(frozen=True)
class InForce:
    """A signed revision was put in force."""

    revision: Revision
    actor: str


@dataclass(frozen=True)
class Stopped:
    """No rule holds any more."""

    actor: str


HotelEvent = (
    HotelSceneBegan
    | HotelAsked
    | Waits
    | Refused
    | Decided
    | HotelAnswered
    | Kept
    | Proposed
    | Agreed
    | InForce
    | Stopped
)


def play_hotel(**parts: Any) -> Iterator[HotelEvent]:
    """Play every scene in one new conversation. Blocking. Raises what ``open_agent`` and ``send`` raise.

    ``parts`` go to ``open_agent``; the plan, the tenant and the model are the demo's.
    """
    script = load_hotel_script()
    model = ScriptedReceptionist(steps={scene.says: scene.steps for scene in script.scenes}, check_in="")
    with open_agent(plan=PLAN, tenant=HOTEL_TENANT, model=model, **parts) as agent:
        began = agent.services.clock()
        model.check_in = (began + _ARRIVES_IN).date().isoformat()
        _prepare(agent, script)
        conversation = str(uuid4())
        for scene in script.scenes:
            yield from _play(agent, scene, script.user, conversation)
        found = agent.run_sync(agent.governance.evidence.list(actor=script.supervisor))
        yield Kept(tuple(one for one in reversed(found) if one.conversation == conversation))
        yield from _learn(agent, model, script)


def _learn(agent: Agent, model: ScriptedReceptionist, script: HotelScript) -> Iterator[HotelEvent]:
    """From approvals to a rule in force, its stop and the way back."""
    titles, governance, chief = script.learns.scenes, agent.governance, script.supervisor
    (reservation,) = agent.run_sync(Hotel(agent.services.database, HOTEL_TENANT).reservations())
    desk = _Desk(agent, model, script, reservation.id)
    yield HotelSceneBegan(titles.approvals)
    for pct in script.learns.discounts:
        yield from desk.discount(pct)
    yield HotelSceneBegan(titles.proposal)
    for proposal in agent.run_sync(governance.proposals.sweep(actor=chief)):
        yield Proposed(proposal)
        agent.run_sync(governance.proposals.decide(proposal.id, "approve", actor=chief))
        yield Agreed(chief)
    yield HotelSceneBegan(titles.revision)
    revision = agent.run_sync(governance.plans.compile(PLAN, actor=chief))
    yield InForce(agent.run_sync(governance.plans.activate(revision.number, actor=chief)), chief)
    yield from desk.discount(10)
    yield HotelSceneBegan(titles.stop)
    agent.run_sync(governance.plans.stop(actor=chief))
    yield Stopped(chief)
    yield from desk.discount(10)
    agent.run_sync(governance.plans.lift(actor=script.owner))
    yield HotelSceneBegan(titles.rollback)
    yield InForce(agent.run_sync(governance.plans.rollback(actor=chief)), chief)
    yield from desk.discount(10)


@dataclass
class _Desk:
    """Asks for discounts, each in a conversation of its own; the supervisor approves what waits."""

    agent: Agent
    model: ScriptedReceptionist
    script: HotelScript
    reservation: str
    asked: int = 0

    def discount(self, pct: int) -> Iterator[HotelEvent]:
        """Ask for so many per cent."""
        self.asked += 1
        text, steps = self.script.learns.asked(self.asked, pct, self.reservation)
        self.model.steps = {text: steps}
        yield HotelAsked(text)
        turn = self.agent.send_sync(text, user=self.script.user, conversation=str(uuid4()))
        if turn.pending is not None:
            yield Waits(turn.pending)
            decides = Decides(actor=self.script.supervisor, decision="approve")
            turn = self.agent.run_sync(self.agent.resume(turn.pending, "approve", actor=decides.actor))
            yield Decided(decides)
        yield HotelAnswered(turn)


def _prepare(agent: Agent, script: HotelScript) -> None:
    """Rooms and people; those of an earlier run stay, its reservations and its memory go."""
    hotel = Hotel(agent.services.database, HOTEL_TENANT)
    rooms = [Room(**{**room, "price": Decimal(room["price"])}) for room in script.rooms]
    agent.run_sync(hotel.load(rooms))
    agent.run_sync(hotel.clear_reservations())
    roles = agent.governance.roles
    known = agent.run_sync(Roles(agent.services.database, HOTEL_TENANT, agent.services.keys).all())
    if script.owner not in known:
        agent.run_sync(roles.appoint_first_owner(script.owner))
    if script.supervisor not in known:
        agent.run_sync(roles.grant(script.supervisor, "supervisor", actor=script.owner))
    _undo_earlier(agent, script)
    _remember(agent, script)


def _remember(agent: Agent, script: HotelScript) -> None:
    """Anew: the conflict of one memory with a rule is evidence once."""
    for earlier in agent.run_sync(agent.memory.list(user=script.user)):
        if earlier.text == script.remembers:
            agent.run_sync(agent.memory.forget(earlier.id, user=script.user))
    agent.run_sync(agent.memory.remember(script.remembers, user=script.user))


def _undo_earlier(agent: Agent, script: HotelScript) -> None:
    """What a run that was broken off left on: a stop, or a revision with the rule."""
    plans = agent.governance.plans
    if agent.run_sync(plans.stopped(actor=script.supervisor)):
        agent.run_sync(plans.lift(actor=script.owner))
    if agent.run_sync(plans.show(actor=script.supervisor)).revision.plan.auto_approve_rules:
        agent.run_sync(plans.rollback(actor=script.supervisor))


def _play(agent: Agent, scene: HotelScene, user: str, conversation: str) -> Iterator[HotelEvent]:
    yield HotelSceneBegan(scene)
    yield HotelAsked(scene.says)
    turn = agent.send_sync(scene.says, user=user, conversation=conversation)
    if turn.pending is not None:
        yield Waits(turn.pending)
    for decides in scene.decides:
        assert turn.pending is not None, "a scene with decisions stops for them"
        resume = agent.resume(turn.pending, decides.decision, actor=decides.actor, reason=decides.reason)
        try:
            turn = agent.run_sync(resume)
        except ScopeError as error:
            yield Refused(decides.actor, error.sentence)
        else:
            yield Decided(decides)
    yield HotelAnswered(turn)
