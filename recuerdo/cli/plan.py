"""``recuerdo plan``: how an agent behaves."""

from typing import Annotated

import typer
import yaml

from recuerdo.cli.console import note, print_json, printable
from recuerdo.cli.options import AsJson

plan_app = typer.Typer(name="plan", help="How an agent behaves.", no_args_is_help=True)


@plan_app.callback()
def plan() -> None:
    """How an agent behaves."""


@plan_app.command()
def show(
    plan: Annotated[
        str | None, typer.Argument(help="A plan's name or YAML file. Default: RECUERDO_PLAN.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a plan and show it whole, defaults included."""
    from recuerdo.stores.plans import load_plan
    from recuerdo.stores.settings import Settings

    found = load_plan(plan or Settings.load().plan)
    data = found.model_dump(mode="json")
    if as_json:
        print_json({**data, "draft": found.draft})
        return
    print(printable(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=110)), end="")
    if found.draft:
        note("plan_draft", plan=found.name)
