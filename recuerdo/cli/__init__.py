"""The command line. Commands load what they need when they run, so that the small ones start fast.

Errors that a user can cause are one line on standard error and exit code 1, wrong usage is exit code 2.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import typer

from recuerdo.cli.approvals import approvals_app
from recuerdo.cli.audit import audit_app
from recuerdo.cli.bench import bench
from recuerdo.cli.chat import chat
from recuerdo.cli.console import complain
from recuerdo.cli.context import context_app
from recuerdo.cli.demo import demo
from recuerdo.cli.doctor import doctor
from recuerdo.cli.evaluate import evaluate
from recuerdo.cli.events import events_app
from recuerdo.cli.evidence import evidence_app
from recuerdo.cli.inspect_text import inspect_text
from recuerdo.cli.market import market
from recuerdo.cli.memory import memory_app
from recuerdo.cli.pack import pack_app
from recuerdo.cli.plan import plan_app
from recuerdo.cli.platform import platform_app
from recuerdo.cli.proposals import proposals_app
from recuerdo.cli.roles import roles_app
from recuerdo.cli.worker import worker
from recuerdo.state.errors import RecuerdoError

app = typer.Typer(
    name="recuerdo",
    help="Recuerdo: an agent memory and context engine for LangGraph.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(approvals_app)
app.add_typer(audit_app)
app.command()(bench)
app.command()(chat)
app.command()(demo)
app.command()(doctor)
app.add_typer(context_app)
app.command("eval")(evaluate)
app.add_typer(events_app)
app.add_typer(evidence_app)
app.command("inspect")(inspect_text)
app.command()(market)
app.add_typer(memory_app)
app.add_typer(pack_app)
app.add_typer(plan_app)
app.add_typer(platform_app)
app.add_typer(proposals_app)
app.add_typer(roles_app)
app.command()(worker)


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    for number in _ending_signals():
        signal.signal(number, _end)
    # What a terminal or a pipe gives need not be text, and not every terminal can show all of it.
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace"), (sys.stderr, "replace")):
        stream.reconfigure(errors=errors)  # type: ignore[union-attr]
    try:
        app()
    except RecuerdoError as error:
        complain(error.sentence)
        sys.exit(1)
    finally:
        _flush()


def _ending_signals() -> list[signal.Signals]:
    return [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """End as at a normal exit: the agent closes, and the last client stops the embedded server."""
    sys.exit(128 + number)


def _flush() -> None:
    """A reader that went away (``| head``) is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
