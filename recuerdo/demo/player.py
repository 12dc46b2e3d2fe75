"""Plays the trading scenes through the real graph, in a tenant and on a clock of their own."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from recuerdo.agent import Agent
from recuerdo.demo.clock import DEMO_TENANT, running_from
from recuerdo.demo.sample import load_sample
from recuerdo.demo.scenes import Round, Scene, Script, Visit, load_script
from recuerdo.demo.written import WrittenReplies
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.opening import open_agent
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.platform import Platform, parse_sample
from recuerdo.turn import Turn

PLAN = "trading"
_HISTORY_BEFORE = timedelta(hours=1)
_STATED_IN_A_SCENE = frozenset({"show_disclaimers"})


@dataclass(frozen=True)
class Opened:
    """Everything is open; ``offline``: no model is configured."""

    offline: bool


@dataclass(frozen=True)
class SceneBegan:
    """A scene begins."""

    scene: Scene


@dataclass(frozen=True)
class VisitBegan:
    """The application was opened anew at the visit's instant."""

    visit: Visit


@dataclass(frozen=True)
class HistoryBuilt:
    """So many messages were said before, with written replies."""

    messages: int


@dataclass(frozen=True)
class Asked:
    """The user's message is on its way."""

    text: str


@dataclass(frozen=True)
class Answered:
    """The turn is over. ``reply`` is the delivered text without the offline responder's standing notice."""

    reply: str
    turn: Turn


Event = Opened | SceneBegan | VisitBegan | HistoryBuilt | Asked | Answered


def play_trading() -> Iterator[Event]:
    """Play every scene in new conversations; preferences and memories of earlier runs stay.

    Blocking. Uses the configured model, else the offline responder. Raises what ``open_agent`` and
    ``send`` raise.
    """
    script = load_script()
    yield Opened(_prepare(script))
    for scene in script.scenes:
        yield SceneBegan(scene)
        for visit in scene.visits:
            yield from _play(visit)


def _prepare(script: Script) -> bool:
    """Load the sample data; returns whether no model is configured."""
    with open_agent(plan=PLAN, tenant=DEMO_TENANT, clock=running_from(script.present)) as agent:
        services = agent.services
        loading = load_sample(services, DEMO_TENANT, script.present, without=_STATED_IN_A_SCENE)
        agent.run_sync(loading)
        agent.run_sync(Platform(services.database, DEMO_TENANT).load(parse_sample(script.platform)))
        return isinstance(services.model, OfflineResponder)


def _play(visit: Visit) -> Iterator[Event]:
    conversation = str(uuid4())
    rounds = visit.rounds()
    if rounds:
        _build_history(visit, rounds, conversation)
        yield HistoryBuilt(2 * len(rounds))
    with open_agent(plan=PLAN, tenant=DEMO_TENANT, clock=running_from(visit.at)) as agent:
        yield VisitBegan(visit)
        for text in visit.says:
            yield Asked(text)
            yield _answer(agent, text, visit.user, conversation)


def _build_history(visit: Visit, rounds: tuple[Round, ...], conversation: str) -> None:
    model = WrittenReplies(replies={one.user: one.assistant for one in rounds})
    clock = running_from(visit.at - _HISTORY_BEFORE)
    with open_agent(plan=PLAN, tenant=DEMO_TENANT, model=model, clock=clock) as agent:
        for one in rounds:
            agent.send_sync(one.user, user=visit.user, conversation=conversation)


def _answer(agent: Agent, text: str, user: str, conversation: str) -> Answered:
    turn = agent.send_sync(text, user=user, conversation=conversation)
    notice = load_sentences("recuerdo.nodes.call_llm")("no_model")
    reply = turn.reply.replace(notice.es, "").replace(notice.en, "")
    return Answered("\n\n".join(part.strip() for part in reply.split("\n\n") if part.strip()), turn)
