"""``recuerdo memory export``, ``export-db``, ``import-db`` and ``reindex``: memory out of the house, and back."""

from pathlib import Path
from typing import Annotated

import typer

from recuerdo.cli.console import checked_name, print_json, speaker
from recuerdo.cli.options import AsJson, Assistant, PlanName, Tenant, User
from recuerdo.demo import SAMPLE_USER
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__, "memory_files_sentences.yaml")
_said = speaker(sentences)

DatabaseFile = Annotated[Path, typer.Argument(help="The SQLite file, usually memory.db.", metavar="FILE")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace a file that is there.")]
Importer = Annotated[
    str,
    typer.Option(
        help="Who imports, for the audit. What was published stays so for an owner.", metavar="NAME"
    ),
]


def add_files(app: typer.Typer) -> None:
    """Put these commands under ``app``."""
    app.command("export")(export)
    app.command("export-db")(export_db)
    app.command("import-db")(import_db)
    app.command()(reindex)


def export(user: User = None, tenant: Tenant = None) -> None:
    """Print everything that is kept of a user, conversations included, as one JSON document."""
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(user, tenant)) as agent:
        print_json(agent.run_sync(agent.memory.export(user=user or SAMPLE_USER)))


def export_db(
    file: DatabaseFile, replace: Replace = False, tenant: Tenant = None, as_json: AsJson = False
) -> None:
    """Write a tenant's whole long-term memory into one SQLite file."""
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(tenant=tenant)) as agent:
        written = agent.run_sync(agent.memory.export_db(file, replace=replace))
    if as_json:
        print_json({"file": str(file), "rows": written})
    else:
        print(_said("exported", file=file, memories=written["user_memory"], rows=sum(written.values())))


def import_db(file: DatabaseFile, actor: Importer, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Bring a tenant's SQLite file back, all of it or nothing; what is there already stays as it is."""
    from recuerdo.cli.session import Identity, open_stores

    checked_name("--actor", actor)
    with open_stores(Identity(tenant=tenant)) as agent:
        done = agent.run_sync(agent.memory.import_db(file, actor=actor))
    if as_json:
        print_json(
            {
                "file": str(file),
                "rows": done.written,
                "present": done.present,
                "unpublished": done.unpublished,
            }
        )
        return
    print(_said("imported", file=file, rows=sum(done.written.values()), present=done.present))
    if done.unpublished:
        print(_said("unpublished", count=done.unpublished))


def reindex(
    tenant: Tenant = None, assistant: Assistant = None, plan: PlanName = None, as_json: AsJson = False
) -> None:
    """Write an assistant's vector index anew from PostgreSQL; nothing is embedded again."""
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(None, tenant, assistant, plan)) as agent:
        done = agent.run_sync(agent.memory.reindex())
    if as_json:
        print_json({"indexed": done})
    else:
        print(_said("reindexed", count=done))
