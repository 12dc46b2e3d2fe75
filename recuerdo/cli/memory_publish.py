"""``recuerdo memory publish`` and ``withdraw``: what a supervisor makes permanent, or takes back (OR-11, IM-51)."""

from typing import Annotated
from uuid import UUID

import typer

from recuerdo.cli.console import print_json, speaker
from recuerdo.cli.options import Actor, AsJson, Assistant, PlanName, Tenant
from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__, "memory_publish_sentences.yaml")
_say = speaker(sentences)

_PUBLISHED, _WITHDRAWN = "published", "withdrawn"

MemoryId = Annotated[str, typer.Argument(help="Id of a memory.", metavar="ID")]
Reason = Annotated[str, typer.Option(help="Why, for the audit.", metavar="TEXT")]


def add_publishing(app: typer.Typer) -> None:
    """Put both commands under ``app``."""
    app.command()(publish)
    app.command()(withdraw)


def publish(
    memory: MemoryId,
    actor: Actor,
    reason: Reason,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Make a memory permanent."""
    _decide(_PUBLISHED, memory, actor, reason, (tenant, assistant, plan), as_json=as_json)


def withdraw(
    memory: MemoryId,
    actor: Actor,
    reason: Reason,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Take a published memory out of use."""
    _decide(_WITHDRAWN, memory, actor, reason, (tenant, assistant, plan), as_json=as_json)


def _decide(
    status: str,
    memory: str,
    actor: str,
    reason: str,
    where: tuple[str | None, str | None, str | None],
    *,
    as_json: bool,
) -> None:
    from recuerdo.cli.session import Identity, open_stores

    memory_id = _memory_id(memory)
    with open_stores(Identity(None, *where)) as agent:
        act = agent.memory.publish if status == _PUBLISHED else agent.memory.withdraw
        agent.run_sync(act(memory_id, actor=actor, reason=reason))
    if as_json:
        print_json({"memory": str(memory_id), "status": status, "actor": actor})
    else:
        print(_say(status, memory=memory_id))


def _memory_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InputError(sentences("no_memory_id", text=text[:60])) from None
