"""``recuerdo market``: whether an exchange is open."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from recuerdo.cli.console import print_json, say, sentences
from recuerdo.cli.options import AsJson
from recuerdo.state.errors import InputError


def market(
    exchange: Annotated[str, typer.Argument(help='Code such as XNYS, XMEX, FOREX or "24/7".')] = "XNYS",
    at: Annotated[
        str | None, typer.Option(help="ISO 8601 with offset. Default: now.", metavar="INSTANT")
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(help="Time zone to show, such as America/Mexico_City. Default: the exchange's."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show whether an exchange is open, and when it opens and closes next."""
    from recuerdo.stores.settings import Settings

    # pandas comes with it, unless the sessions are in the cache.
    from recuerdo.stores.sources.calendar import MarketCalendar, named_zone
    from recuerdo.stores.sources.calendar_cache import CalendarCache

    calendar = MarketCalendar(CalendarCache(Settings.load().data / "calendars"))
    status = calendar.status(exchange, _instant(at))
    if zone is not None:
        status = status.in_zone(named_zone(zone))
    times = {"at": status.at, "next_open": status.next_open, "next_close": status.next_close}
    shown = {name: time.isoformat() if time else None for name, time in times.items()}
    if as_json:
        print_json({"exchange": status.exchange, "open": status.status == "open", **shown})
        return
    print(say(f"market_{status.status}", exchange=status.exchange, at=shown["at"]))
    for name in ("next_open", "next_close"):
        if shown[name]:
            print(say(f"market_{name}", time=shown[name]))


def _instant(at: str | None) -> datetime:
    if at is None:
        return datetime.now(UTC)
    try:
        return datetime.fromisoformat(at)
    except ValueError:
        raise InputError(sentences("instant_invalid")) from None
