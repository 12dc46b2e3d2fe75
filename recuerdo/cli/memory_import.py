"""``recuerdo memory import``: the memories of another memory tool, from its Chroma folder."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from recuerdo.cli.console import checked_name, complain, language, print_json, quiet_logs
from recuerdo.cli.options import AsJson, Tenant

Folder = Annotated[Path, typer.Argument(help="Folder that holds chroma.sqlite3.", metavar="DIR")]
Owner = Annotated[
    str | None,
    typer.Option(
        "--assistant",
        help="Import this assistant's alone. Default: those that the folder names.",
        metavar="NAME",
    ),
]


def import_memory(
    folder: Folder, tenant: Tenant = None, assistant: Owner = None, as_json: AsJson = False
) -> None:
    """Import memories from a Chroma folder of {assistant}_memories, which is only read; may be run again."""
    from recuerdo.demo.clock import clock_of
    from recuerdo.memory_import import import_chroma, sentences
    from recuerdo.nodes.services import system_clock
    from recuerdo.store import open_store
    from recuerdo.stores.settings import Settings

    quiet_logs()
    settings = Settings.load()
    owner, name = checked_name("--tenant", tenant) or settings.tenant, checked_name("--assistant", assistant)
    clock = clock_of(owner) or system_clock
    with open_store(settings, tenant=owner, clock=clock) as store:
        report = asyncio.run(import_chroma(store, folder, assistant=name, clock=clock))
    left_out = {document.id: document.reason.in_language(language()) for document in report.left_out}
    if as_json:
        print_json(
            {
                "assistants": report.assistants,
                "imported": report.imported,
                "present": report.present,
                "users": len(report.users),
                "left_out": left_out,
            }
        )
        return
    values = {"imported": report.imported, "present": report.present, "skipped": len(left_out)}
    print(sentences("imported", **values).in_language(language()))
    for document in report.left_out:
        complain(sentences("left_out", id=document.id, reason=document.reason))
