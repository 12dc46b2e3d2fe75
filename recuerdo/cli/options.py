"""Options that several commands share."""

from typing import Annotated

import typer

from recuerdo.cli.console import checked_name, note
from recuerdo.demo import SAMPLE_USER

User = Annotated[
    str | None, typer.Option(help=f"Whose memory. Default: the sample user {SAMPLE_USER}.", metavar="ID")
]
Conversation = Annotated[
    str | None, typer.Option(help="Conversation to go on with. Default: a new one.", metavar="ID")
]
Tenant = Annotated[str | None, typer.Option(help="Default: RECUERDO_TENANT.", metavar="NAME")]
Assistant = Annotated[
    str | None, typer.Option(help="Whose long-term memory. Default: the plan's name.", metavar="NAME")
]
PlanName = Annotated[
    str | None,
    typer.Option("--plan", help="A plan's name or YAML file. Default: RECUERDO_PLAN.", metavar="NAME|FILE"),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def named(actor: str) -> str:
    """Who acts, as given. Without a name the command ends with one line and exit code 2, for wrong usage."""
    if not actor:
        note("actor_missing")
        raise typer.Exit(2)
    checked_name("--actor", actor)
    return actor


Actor = Annotated[
    str,
    typer.Option(
        "--actor",
        envvar="RECUERDO_ACTOR",
        callback=named,
        default_factory=str,
        show_default=False,
        help="Who acts or looks; what he may do is a matter of his role.",
        metavar="NAME",
    ),
]
MaybeActor = Annotated[
    str,
    typer.Option(
        "--actor",
        envvar="RECUERDO_ACTOR",
        default_factory=str,
        show_default=False,
        help="Who looks, where what is kept is looked at.",
        metavar="NAME",
    ),
]
"""For a command that needs no actor for files; it calls :func:`named` where it needs one."""
