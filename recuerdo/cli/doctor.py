"""``recuerdo doctor``: why something seems forgotten, or how the deployment is (LA-6, LA-16, LA-33, IM-11)."""

import getpass
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType

from recuerdo.cli.console import checked_name, language, out, plain_text, print_json
from recuerdo.cli.options import AsJson, Assistant, PlanName, Tenant
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.doctor import Finding

sentences = load_sentences(__package__, "doctor_sentences.yaml")


class SymptomName(StrEnum):
    """What seems wrong."""

    no_last_round = "no_last_round"
    tool_forgotten = "tool_forgotten"
    event_not_found = "event_not_found"
    event_tools_missing = "event_tools_missing"
    event_parameter_error = "event_parameter_error"


def doctor(
    symptom: Annotated[
        SymptomName | None,
        typer.Option(
            help="What seems wrong. Default: each of them for --conversation or --user, else the whole house."
        ),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(help="The conversation in which it seems wrong.", metavar="ID")
    ] = None,
    user: Annotated[str | None, typer.Option(help="Who complains.", metavar="ID")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="It happens in preview.")] = False,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Say what may be the cause, first things first: each with its value, why it matters and how to change it."""
    from recuerdo.cli.session import Identity, open_stores

    checked_name("--conversation", conversation)
    identity = Identity(user, tenant, assistant, plan)
    with open_stores(identity, mode="preview" if preview else "live") as agent:
        looking = agent.diagnose(
            symptom.value if symptom else None,
            conversation=conversation,
            user=user,
            actor=getpass.getuser(),
        )
        found = agent.run_sync(looking)
    if as_json:
        print_json(found.as_data())
        return
    for answer in found.answers or [found]:
        if answer.symptom:
            out().print(plain_text(sentences(answer.symptom).in_language(language()), "bold underline"))
        out().print(Group(*(_shown(one) for one in answer.findings)))


def _shown(found: "Finding") -> RenderableType:
    here = language()
    mark = sentences("good" if found.ok else "look").in_language(here)
    value = json.dumps(found.value, ensure_ascii=False, default=str)
    lines = [
        plain_text(f"[{mark}] {found.title.in_language(here)}", "green" if found.ok else "bold yellow"),
        plain_text("  " + sentences("value", value=value).in_language(here)),
        plain_text("  " + sentences("why", text=found.why).in_language(here), "dim"),
        plain_text("  " + sentences("change", text=found.change).in_language(here), "dim"),
    ]
    return Group(*lines)
