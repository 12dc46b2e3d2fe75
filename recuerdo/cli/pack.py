"""``recuerdo pack``: folders of rules as immutable, signed packs (OR-13 to OR-16)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from recuerdo.cli.console import (
    complain,
    language,
    out,
    plain_text,
    print_json,
    printable,
    speaker,
)
from recuerdo.cli.desk import open_desk
from recuerdo.cli.options import Actor, AsJson, MaybeActor, Tenant, named
from recuerdo.state.errors import RecuerdoError, SettingsError
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.nodes.services import Services
    from recuerdo.stores.keys import KeyFolder
    from recuerdo.stores.packs import Pack, PackEntry, Packs, SealedPack

sentences = load_sentences(__package__, "pack_sentences.yaml")
_say = speaker(sentences)

pack_app = typer.Typer(
    name="pack", help="Knowledge packs: rules that an agent must follow.", no_args_is_help=True
)

Reference = Annotated[str, typer.Argument(help="A pack as the list shows it.", metavar="NAME@PIN")]
Version = Annotated[str, typer.Argument(help="A pack, or a folder as it is now.", metavar="NAME@PIN|DIR")]


@pack_app.command()
def build(
    folder: Annotated[Path, typer.Argument(help="Folder of Markdown, CSV and YAML.", metavar="DIR")],
    actor: Actor,
    name: Annotated[str | None, typer.Option(help="Name of the pack. Default: the folder's.")] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Check a folder, sign it and keep it; the versions before it stay."""
    from recuerdo.stores.packs import read_folder

    pack = read_folder(folder, name)
    document = asyncio.run(_build(pack, actor, tenant))
    if as_json:
        print_json(document)
        return
    values = {**document, "files": len(document["files"])}
    _print(
        "built" if document["new"] else "built_before", **{k: values[k] for k in ("pack", "files", "tokens")}
    )
    _say_too_large(document["tokens"])


def _say_too_large(tokens: int) -> None:
    """No plan can use it whose budget is the default one (C-23)."""
    from recuerdo.state.plan import Limits

    most = Limits().packs
    if tokens > most:
        complain(sentences("too_large", tokens=tokens, limit=most))


@pack_app.command("list")
def list_packs(actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """List every version of every pack, the newest of each first."""
    tenant, entries = asyncio.run(_entries(tenant, actor))
    if as_json:
        print_json([_entry(entry) for entry in entries])
    elif entries:
        out().print(_list(entries))
    else:
        _print("none", tenant=tenant)


@pack_app.command()
def show(pack: Reference, actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Verify a pack and show its rules."""
    document = asyncio.run(_show(pack, tenant, actor))
    if as_json:
        print_json(document)
        return
    keys = ", ".join(signature["keyid"] for signature in document["envelope"]["signatures"])
    _print("shown", pack=document["pack"], pin=document["pin"], keys=keys, tokens=document["tokens"])
    for file in document["files"]:
        print(printable(f"\n## {file['path']}\n{file['text'].rstrip()}"))


@pack_app.command()
def verify(
    actor: Actor,
    pack: Annotated[
        str | None, typer.Argument(help="Default: every pack of the tenant.", metavar="[NAME@PIN]")
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Check content and signature of one pack, or of all; exit code 1 when one is refused."""
    checks = asyncio.run(_verify(pack, tenant, actor))
    if as_json:
        print_json([check.as_data() for check in checks])
    else:
        out().print(_verified(checks))
    refused = [check for check in checks if check.error]
    if refused:
        raise SettingsError(sentences("some_refused", refused=len(refused), all=len(checks)))


@pack_app.command()
def diff(
    before: Version, after: Version, actor: MaybeActor, tenant: Tenant = None, as_json: AsJson = False
) -> None:
    """Show what differs between two versions, file by file; two folders need no actor."""
    files = _diff(before, after, tenant, actor)
    if as_json:
        print_json({"before": before, "after": after, "files": files})
        return
    if not files:
        _print("same")
    for lines in files.values():
        print(printable("\n".join(lines)))


@dataclass(frozen=True)
class _Check:
    """Whether a pack can be used; ``error`` says why not."""

    reference: str
    error: RecuerdoError | None

    def as_data(self) -> dict[str, Any]:
        return {"pack": self.reference, "ok": self.error is None, "error": self.error and str(self.error)}


@dataclass(frozen=True)
class _Desk:
    """The packs of one tenant, the keys, and what counts tokens."""

    services: "Services"
    tenant: str

    @property
    def packs(self) -> "Packs":
        from recuerdo.stores.packs import Packs

        return Packs(self.services.database, self.tenant)

    @property
    def keys(self) -> "KeyFolder":
        return self.services.keys

    async def sealed(self, reference: str) -> "SealedPack":
        return (await self.packs.read([reference]))[reference]

    async def verified(self, sealed: "SealedPack") -> "Pack":
        from recuerdo.stores.packs import unseal

        return unseal(sealed, await asyncio.to_thread(self.keys.trusted))

    async def tokens(self, pack: "Pack") -> int:
        from recuerdo.nodes.build_context.packs import pack_tokens

        return await asyncio.to_thread(pack_tokens, pack, self.services.counter.count)


@asynccontextmanager
async def _desk(tenant: str | None) -> AsyncIterator[_Desk]:
    async with open_desk(tenant) as (services, name):
        yield _Desk(services, name)


@asynccontextmanager
async def _looking(tenant: str | None, actor: str) -> AsyncIterator[_Desk]:
    """For somebody who looks at what is kept: it takes a role."""
    from recuerdo.stores.postgres.roles import STAFF, Roles

    async with _desk(tenant) as desk:
        await Roles(desk.services.database, desk.tenant, desk.keys).require(actor, STAFF)
        yield desk


async def _build(pack: "Pack", actor: str, tenant: str | None) -> dict[str, Any]:
    from recuerdo.stores.plans import PlanOffice

    async with _desk(tenant) as desk:
        office = PlanOffice(desk.services.database, desk.tenant, desk.keys)
        new = await office.build_pack(pack, actor=actor, at=desk.services.clock())
        return {
            "pack": pack.reference,
            "pin": pack.pin,
            "new": new,
            "files": [file.path for file in pack.files],
            "tokens": await desk.tokens(pack),
        }


async def _entries(tenant: str | None, actor: str) -> tuple[str, Sequence["PackEntry"]]:
    async with _looking(tenant, actor) as desk:
        return desk.tenant, await desk.packs.all()


async def _show(reference: str, tenant: str | None, actor: str) -> dict[str, Any]:
    async with _looking(tenant, actor) as desk:
        sealed = await desk.sealed(reference)
        pack = await desk.verified(sealed)
        return {
            "pack": pack.reference,
            "pin": pack.pin,
            "tokens": await desk.tokens(pack),
            "files": [vars(file) for file in pack.files],
            "envelope": sealed.envelope(),
        }


async def _verify(reference: str | None, tenant: str | None, actor: str) -> list[_Check]:
    async with _looking(tenant, actor) as desk:
        listed = [reference] if reference else [entry.reference for entry in await desk.packs.all()]
        return [await _check(desk, each) for each in listed]


async def _check(desk: _Desk, reference: str) -> _Check:
    sealed = await desk.sealed(reference)
    try:
        await desk.verified(sealed)
    except RecuerdoError as error:
        return _Check(reference, error)
    return _Check(reference, None)


def _diff(before: str, after: str, tenant: str | None, actor: str) -> dict[str, list[str]]:
    kept = [version for version in (before, after) if "@" in version]
    texts = asyncio.run(_kept_texts(kept, tenant, named(actor))) if kept else {}
    old, new = (texts[version] if version in texts else _folder_texts(version) for version in (before, after))
    found = {path: _lines(path, old.get(path, ""), new.get(path, "")) for path in sorted({*old, *new})}
    return {path: lines for path, lines in found.items() if lines}


async def _kept_texts(references: Sequence[str], tenant: str | None, actor: str) -> dict[str, dict[str, str]]:
    async with _looking(tenant, actor) as desk:
        packs = [await desk.verified(await desk.sealed(reference)) for reference in references]
    return {reference: _texts(pack) for reference, pack in zip(references, packs, strict=True)}


def _folder_texts(folder: str) -> dict[str, str]:
    from recuerdo.stores.packs import read_folder

    return _texts(read_folder(Path(folder), "folder"))


def _texts(pack: "Pack") -> dict[str, str]:
    return {file.path: file.text for file in pack.files}


def _lines(path: str, old: str, new: str) -> list[str]:
    return list(unified_diff(old.split("\n"), new.split("\n"), path, path, lineterm=""))


def _print(key: str, **values: object) -> None:
    print(printable(sentences(key, **values).in_language(language())))


def _entry(entry: "PackEntry") -> dict[str, Any]:
    return {
        "pack": entry.reference,
        "level": entry.level,
        "bytes": entry.size,
        "built_at": entry.built_at.isoformat(),
        "built_by": entry.built_by,
    }


def _list(entries: Sequence["PackEntry"]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in ("column_pack", "column_level", "column_size", "column_built_at", "column_built_by"):
        table.add_column(_say(key), overflow="fold")
    for entry in entries:
        when = f"{entry.built_at:%Y-%m-%d %H:%M %Z}"
        cells = (entry.reference, str(entry.level), str(entry.size), when, entry.built_by)
        table.add_row(*map(plain_text, cells))
    return table


def _verified(checks: Sequence[_Check]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(_say("column_pack"), overflow="fold")
    table.add_column(_say("column_state"), overflow="fold")
    for check in checks:
        state = check.error.sentence.in_language(language()) if check.error else _say("sound")
        table.add_row(plain_text(check.reference), plain_text(state, "red" if check.error else ""))
    return table
