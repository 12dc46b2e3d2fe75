"""``recuerdo memory``: list and forget what is remembered of a user; further commands stand beside."""

from typing import Annotated

import typer

from recuerdo.cli.console import out, print_json, say
from recuerdo.cli.memory_files import add_files
from recuerdo.cli.memory_import import import_memory
from recuerdo.cli.memory_publish import add_publishing
from recuerdo.cli.memory_rights import add_rights
from recuerdo.cli.options import AsJson, Assistant, PlanName, Tenant, User
from recuerdo.demo import SAMPLE_USER

memory_app = typer.Typer(name="memory", help="What is remembered of a user.", no_args_is_help=True)
add_rights(memory_app)
add_publishing(memory_app)
add_files(memory_app)
memory_app.command("import")(import_memory)


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
