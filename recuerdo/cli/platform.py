"""``recuerdo platform``: the platform's own data, loaded from files."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from recuerdo.cli.console import complain, print_json, printable, say, sentences
from recuerdo.cli.options import AsJson, Tenant
from recuerdo.state.errors import InputError

if TYPE_CHECKING:
    from recuerdo.stores.postgres.platform.tables import Batch
    from recuerdo.stores.sources.rows import Row

platform_app = typer.Typer(
    name="platform", help="Profiles, quotes, positions and the like.", no_args_is_help=True
)


@platform_app.callback()
def platform() -> None:
    """Profiles, quotes, positions and the like."""


@platform_app.command()
def load(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder with .csv or .json files named profiles, quotes, positions, alerts, signals,"
            " education, events.",
            metavar="DIR",
        ),
    ],
    tenant: Tenant = None,
    zone: Annotated[
        str | None,
        typer.Option(
            help="Time zone of instants without offset, such as America/Mexico_City. Default: refuse them.",
            metavar="ZONE",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Load every file of a folder, replacing rows of the same key: all of them, or nothing."""
    from recuerdo.stores.sources.files import FILES, DataError, Reading, read_folder

    batches = read_folder(folder, Reading(_zone(zone), _spelled, datetime.now(UTC), _has_calendar))
    try:
        tenant, loaded = _write(batches, tenant)
    except DataError as error:
        for problem in error.problems:
            complain(problem)
        raise InputError(sentences("platform_not_loaded")) from None
    counts = {name: loaded[model] for name, model in FILES.items() if model in loaded}
    if as_json:
        print_json({"tenant": tenant, "loaded": counts})
        return
    for name, count in counts.items():
        print(say("platform_loaded", name=name, count=count))


def _write(batches: "Iterator[Batch]", tenant: str | None) -> "tuple[str, dict[type[Row], int]]":
    """Load the batches; gives the tenant's name and the rows by kind."""
    # Opening takes seconds: a folder that is not there is said at once.
    first = list(islice(batches, 1))

    from recuerdo.cli.session import Identity, open_stores
    from recuerdo.stores.postgres.platform import Platform

    with open_stores(Identity(tenant=tenant)) as agent:
        target = Platform(agent.services.database, agent.tenant)
        return agent.tenant, agent.run_sync(target.load_batches(chain(first, batches)))


def _spelled(symbol: str) -> str:
    """As conversations spell it: BTC, BTC-USD and BTC/USD are one."""
    from recuerdo.nodes.build_context.symbols import instrument

    known = instrument(symbol)
    return known.symbol if known else symbol.upper()


def _has_calendar(market: str) -> bool:
    # pandas, which it needs, takes a second to import: only profiles pay it.
    from recuerdo.stores.sources.exchanges.library import has_calendar

    return has_calendar(market)


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(sentences("zone_unknown", zone=printable(name or "")[:60])) from None
