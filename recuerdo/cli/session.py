"""An opened agent and who speaks to it, as the commands use it."""

from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from uuid import uuid4

from recuerdo.agent import Agent
from recuerdo.cli.console import checked_name, complain, note, quiet_logs
from recuerdo.demo import SAMPLE_USER
from recuerdo.demo.clock import clock_of
from recuerdo.demo.sample import load_sample
from recuerdo.graph.services import Parts
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.opening import AgentOpening
from recuerdo.state.turn import Mode
from recuerdo.stores.plans import is_file, load_plan
from recuerdo.stores.settings import Settings
from recuerdo.turn import Turn


@dataclass(frozen=True)
class Identity:
    """Who speaks and where; None: the sample user, the settings' tenant and plan, the plan's own name."""

    user: str | None = None
    tenant: str | None = None
    assistant: str | None = None
    plan: str | None = None

    def __post_init__(self) -> None:
        for option in ("user", "tenant", "assistant"):
            checked_name(f"--{option}", getattr(self, option))


class Session:
    """One conversation of one user with an opened agent."""

    def __init__(self, agent: Agent, user: str, conversation: str | None = None) -> None:
        self.agent = agent
        self.user = user
        self.conversation = conversation or str(uuid4())

    def ask(self, text: str, on_token: Callable[[str], None] = lambda token: None) -> Turn:
        """Run one turn; ``on_token`` gets each piece of the reply, in another thread.

        An interrupt cancels the turn and is raised again once what was said so far is kept.
        """
        return self.agent.run_sync(self._stream(text, on_token))

    async def _stream(self, text: str, on_token: Callable[[str], None]) -> Turn:
        stream = self.agent.stream(text, user=self.user, conversation=self.conversation)
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                if chunk.type == "token":
                    on_token(chunk.text)
                if chunk.turn is not None:
                    return chunk.turn
        raise AssertionError("a turn that raised nothing ends with a done chunk")


@contextmanager
def open_session(identity: Identity, conversation: str | None, mode: Mode) -> Iterator[Session]:
    """Open an agent to talk to; says on standard error who speaks, and what is not there."""
    quiet_logs()
    with _opening(identity, mode=mode) as agent:
        _warn_of_index(agent)
        if identity.user is None:
            _greet_sample_user(agent, identity.tenant)
        yield Session(agent, identity.user or SAMPLE_USER, conversation)


@contextmanager
def open_stores(identity: Identity, *, mode: Mode = "live") -> Iterator[Agent]:
    """Open an agent only to look at what it keeps: a model that is set up wrongly does not stand in the way.

    Nor does a plan that is not signed: no turn runs. Nor is one signed, for somebody who may have no role.
    """
    quiet_logs()
    with _opening(identity, mode=mode, to_look=True) as agent:
        yield agent


@contextmanager
def open_with_model(identity: Identity) -> Iterator[Agent]:
    """Open an agent whose model does some work beside the conversations."""
    quiet_logs()
    with _opening(identity) as agent:
        yield agent


def _opening(identity: Identity, *, mode: Mode = "live", to_look: bool = False) -> AgentOpening:
    """An agent for this identity, on its tenant's own clock: the demo's data would have expired by ours."""
    settings = Settings.load()
    plan = identity.plan or settings.plan
    tenant = identity.tenant or settings.tenant
    parts = Parts(
        plan=load_plan(plan) if to_look and is_file(plan) else plan,
        model=OfflineResponder() if to_look else None,
        clock=clock_of(tenant),
        tenant=tenant,
        to_look=to_look,
    )
    return AgentOpening(settings, parts, tenant, identity.assistant, mode)


def _warn_of_index(agent: Agent) -> None:
    """Another process may hold the vectors: all works, and it is said."""
    if unavailable := agent.services.index.unavailable:
        complain(unavailable)


def _greet_sample_user(agent: Agent, tenant: str | None) -> None:
    services = agent.services
    agent.run_sync(load_sample(services, tenant or services.settings.tenant, services.clock()))
    note("sample_user", user=SAMPLE_USER)
