"""Options that several commands share."""

from typing import Annotated

import typer

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
