"""``recuerdo demo``: the scripted scenarios, through the real graph."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.panel import Panel
from rich.rule import Rule

from recuerdo.cli.console import is_terminal, language, out, plain_text, quiet_logs, say

if TYPE_CHECKING:
    from recuerdo.demo.player import Event


def demo(
    name: Annotated[
        Literal["trading", "hotel", "events", "memory"], typer.Argument(help="Which demo.")
    ] = "trading",
    then_chat: Annotated[bool, typer.Option(help="Stay as a chat afterwards, on a terminal.")] = False,
) -> None:
    """Play scripted scenarios in a tenant of their own; shows what went into each prompt."""
    if name == "hotel":
        from recuerdo.cli.demo_hotel import show_hotel

        show_hotel()
        return
    if name == "events":
        from recuerdo.cli.demo_events import show_events

        show_events()
        return
    if name == "memory":
        from recuerdo.cli.demo_memory import show_memory

        show_memory()
        return
    out().print(plain_text(say("demo_starts"), "dim"))
    from recuerdo.demo.player import play_trading

    quiet_logs()
    for event in play_trading():
        _show(event)
    if not (then_chat and is_terminal()):
        out().print(plain_text("\n" + say("demo_ends")))
        return
    from recuerdo.cli.chat import chat

    out().print(Rule())
    chat()


def _show(event: "Event") -> None:
    from recuerdo.cli.record_view import record_view
    from recuerdo.demo import player

    console = out()
    match event:
        case player.Opened(offline=True):
            console.print(plain_text(say("demo_offline"), "yellow"))
        case player.SceneBegan(scene):
            console.print()
            title = plain_text(f"{scene.requirement} · {scene.title.in_language(language())}", "bold")
            console.print(Rule(title, align="left"))
            console.print(plain_text(scene.watch.in_language(language()), "dim"))
        case player.VisitBegan(visit):
            console.print()
            console.print(plain_text(say("demo_visit", at=visit.at.isoformat(), user=visit.user), "dim"))
        case player.HistoryBuilt(messages):
            console.print()
            console.print(plain_text(say("demo_history", messages=messages), "dim"))
        case player.Asked(text):
            console.print()
            console.print(plain_text(f"> {_shortened(text)}", "bold"), soft_wrap=True)
        case player.Answered(reply, turn):
            console.print(Panel(plain_text(reply), border_style="cyan"))
            console.print(record_view(turn.record))


def _shortened(text: str) -> str:
    """A long message by its beginning and its end."""
    if len(text) <= 600:
        return text
    return text[:200] + say("demo_cut", characters=len(text) - 400) + text[-200:]
