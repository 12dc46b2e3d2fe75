"""``recuerdo memory``: list and forget what is remembered of a user."""

from typing import Annotated

import typer

from recuerdo.cli.console import out, print_json, say
from recuerdo.cli.options import AsJson, Assistant, PlanName, Tenant, User
from recuerdo.demo import SAMPLE_USER

memory_app = typer.Typer(name="memory", help="What is remembered of a user.", no_args_is_help=True)


@memory_app.command("list")
def list_memory(
    user: User = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """List preferences, memories and symbols of interest."""
    from recuerdo.cli.memory_view import Remembered
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(user, tenant, assistant, plan)) as agent:
        remembered = Remembered.read(agent, user or SAMPLE_USER)
    if as_json:
        print_json(remembered.as_data())
    else:
        out().print(remembered.view())


@memory_app.command()
def forget(
    item: Annotated[str, typer.Argument(help="Number in the list, key of a preference, or id of a memory.")],
    user: User = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Forget one item, text and vector."""
    from recuerdo.cli.memory_view import Remembered
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(user, tenant, assistant, plan)) as agent:
        gone = Remembered.read(agent, user or SAMPLE_USER).forget(agent, item)
    if as_json:
        print_json({"user": user or SAMPLE_USER, "forgotten": gone})
    else:
        print(say("memory_forgotten", item=gone))
