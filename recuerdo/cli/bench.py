"""``recuerdo bench``: run one measurement of the source checkout and print its figures."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from recuerdo.cli.console import out, plain_text, print_json, quiet_logs, sentences
from recuerdo.cli.options import AsJson
from recuerdo.state.errors import InputError

# The measurements stand beside the package, with their peers; a wheel does not carry them.
_CHECKOUT = Path(__file__).resolve().parents[2]
_FOLDER = _CHECKOUT / "benchmarks"

Measure = Callable[[Path | None], dict[str, Any]]


def bench(
    name: Annotated[str, typer.Argument(help="Which measurement: a file of benchmarks/, such as turn.")],
    data: Annotated[
        Path | None, typer.Option(help="Data set to measure on, for those that need one.", metavar="PATH")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure on this machine: turn, first_run, and what else stands in benchmarks/."""
    quiet_logs()
    figures = _measure(name)(data)
    if as_json:
        print_json(figures)
        return
    out().print(_table(figures))


def _measure(name: str) -> Measure:
    known = sorted(path.stem for path in _FOLDER.glob("*.py") if not path.stem.startswith("_"))
    if not known:
        raise InputError(sentences("bench_needs_checkout"))
    if name not in known:
        raise InputError(sentences("bench_unknown", name=name, known=", ".join(known)))
    sys.path.insert(0, str(_CHECKOUT))
    measure: Measure = import_module(f"benchmarks.{name}").measure
    return measure


def _table(figures: dict[str, Any]) -> Table:
    """One row a figure; a group of figures has its name in front."""
    table = Table(box=None, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in _rows(figures):
        table.add_row(plain_text(name), plain_text(str(value)))
    return table


def _rows(figures: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in figures.items():
        if isinstance(value, dict):
            rows += _rows(value, f"{prefix}{name} ")
        else:
            rows.append((f"{prefix}{name}", value))
    return rows
