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
    ScriptedReceptionist,
    load_hotel_script,
)
from recuerdo.opening import open_agent
from recuerdo.state.errors import ScopeError
from recuerdo.state.sentences import Sentence
from recuerdo.stores.postgres.approvals import Approval
from recuerdo.stores.postgres.evidence import Evidence
from recuerdo.stores.postgres.hotel import Hotel, Room
from recuerdo.turn import Turn

HOTEL_TENANT = "demo-hotel"
PLAN = "hotel"

_ARRIVES_IN = timedelta(days=30)


@dataclass(frozen=True)
class HotelSceneBegan:
    """A scene begins."""

    scene: HotelScene


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


HotelEvent = HotelSceneBegan | HotelAsked | Waits | Refused | Decided | HotelAnswered | Kept


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


def _prepare(agent: Agent, script: HotelScript) -> None:
    """Rooms, people and the memory; those of an earlier run stay, its reservations go."""
    hotel = Hotel(agent.services.database, HOTEL_TENANT)
    rooms = [Room(**{**room, "price": Decimal(room["price"])}) for room in script.rooms]
    agent.run_sync(hotel.load(rooms))
    agent.run_sync(hotel.clear_reservations())
    roles = agent.governance.roles
    known = agent.run_sync(roles.all())
    if script.owner not in known:
        agent.run_sync(roles.appoint_first_owner(script.owner))
    if script.supervisor not in known:
        agent.run_sync(roles.grant(script.supervisor, "supervisor", actor=script.owner))
    agent.run_sync(agent.memory.remember(script.remembers, user=script.user))


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
