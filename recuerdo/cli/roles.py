"""``recuerdo roles``: who is owner, supervisor or agent of a tenant (OR-11, A-35)."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from recuerdo.cli.console import checked_name, language, out, plain_text, print_json, printable
from recuerdo.cli.desk import at_desk
from recuerdo.cli.options import Actor, AsJson, Tenant
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.governance import Governance
    from recuerdo.stores.postgres.roles import Role

sentences = load_sentences(__package__, "roles_sentences.yaml")

roles_app = typer.Typer(name="roles", help="Who may decide what.", no_args_is_help=True)

Person = Annotated[str, typer.Argument(help="Whose role.", metavar="NAME")]


@roles_app.command("list")
def list_roles(actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """List the roles that were granted; everybody else is a user."""
    roles = at_desk(tenant, lambda desk: desk.roles.all(actor=actor))
    if as_json:
        print_json(roles)
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, role in roles.items():
        table.add_row(plain_text(name), plain_text(role))
    out().print(table)


@roles_app.command()
def appoint(name: Person, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Make somebody the first owner of a tenant that has none."""
    _change(name, "owner", tenant, as_json, lambda desk: desk.roles.appoint_first_owner(name))


@roles_app.command()
def grant(
    name: Person,
    role: Annotated[str, typer.Argument(help="owner, supervisor, agent or user.", metavar="ROLE")],
    actor: Actor,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Give somebody a role, in place of the one before."""
    given = cast("Role", role)
    _change(name, role, tenant, as_json, lambda desk: desk.roles.grant(name, given, actor=actor))


@roles_app.command()
def revoke(name: Person, actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Make somebody an ordinary user again."""
    _change(name, "user", tenant, as_json, lambda desk: desk.roles.revoke(name, actor=actor))


def _change(
    name: str,
    role: str,
    tenant: str | None,
    as_json: bool,
    work: Callable[["Governance"], Awaitable[bool | None]],
) -> None:
    checked_name("NAME", name)
    changed = at_desk(tenant, work) is not False
    if as_json:
        print_json({"user": name, "role": role, "changed": changed})
        return
    key = "changed" if changed else "unchanged"
    print(printable(sentences(key, name=name, role=role).in_language(language())))
