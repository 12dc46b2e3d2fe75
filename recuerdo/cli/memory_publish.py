"""``recuerdo memory publish`` and ``withdraw``: what a supervisor makes permanent, or takes back (OR-11, IM-51)."""

from typing import Annotated
from uuid import UUID

import typer

from recuerdo.cli.console import checked_name, language, print_json
from recuerdo.cli.options import AsJson, Assistant, PlanName, Tenant
from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__, "memory_publish_sentences.yaml")

MemoryId = Annotated[str, typer.Argument(help="Id of a memory.", metavar="ID")]
Actor = Annotated[str, typer.Option(help="Who decides: a supervisor or an owner.", metavar="NAME")]
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
    from recuerdo.cli.session import Identity, open_stores

    memory_id = _memory_id(memory)
    checked_name("--actor", actor)
    with open_stores(Identity(None, tenant, assistant, plan)) as agent:
        agent.run_sync(agent.memory.publish(memory_id, actor=actor, reason=reason))
    _say("published", memory_id, actor, as_json)


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
    from recuerdo.cli.session import Identity, open_stores

    memory_id = _memory_id(memory)
    checked_name("--actor", actor)
    with open_stores(Identity(None, tenant, assistant, plan)) as agent:
        agent.run_sync(agent.memory.withdraw(memory_id, actor=actor, reason=reason))
    _say("withdrawn", memory_id, actor, as_json)


def _say(status: str, memory_id: UUID, actor: str, as_json: bool) -> None:
    if as_json:
        print_json({"memory": str(memory_id), "status": status, "actor": actor})
    elif status == "published":
        print(sentences("published", memory=memory_id).in_language(language()))
    else:
        print(sentences("withdrawn", memory=memory_id).in_language(language()))


def _memory_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InputError(sentences("no_memory_id", text=text[:60])) from None
