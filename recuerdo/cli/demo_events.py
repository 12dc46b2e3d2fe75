"""``recuerdo demo events``: a support conversation over two sessions, with the key events of each prompt."""

from typing import TYPE_CHECKING

from rich.panel import Panel
from rich.rule import Rule

from recuerdo.cli.console import language, out, plain_text, quiet_logs, speaker
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.demo.events import Kept, Said, SessionBegan

sentences = load_sentences(__package__, "demo_events_sentences.yaml")
_say = speaker(sentences)


def show_events() -> None:
    """Play the demo and show it."""
    from recuerdo.demo.events import play_events

    quiet_logs()
    out().print(plain_text(_say("written"), "dim"))
    for happened in play_events():
        _show(happened)


def _show(happened: "SessionBegan | Said | Kept") -> None:
    from recuerdo.demo import events

    match happened:
        case events.SessionBegan(session, user, conversation):
            _show_session(happened, session.at.isoformat(), user, conversation)
        case events.Said():
            _show_turn(happened)
        case events.Kept():
            _show_kept(happened)


def _show_session(began: "SessionBegan", at: str, user: str, conversation: str) -> None:
    console = out()
    console.print()
    console.print(Rule(plain_text(began.session.title.in_language(language()), "bold"), align="left"))
    console.print(plain_text(began.session.watch.in_language(language()), "dim"))
    console.print(plain_text(_say("session", at=at, user=user, conversation=conversation), "dim"))


def _show_turn(said: "Said") -> None:
    console = out()
    console.print()
    console.print(plain_text(f"> {said.text}", "bold"), soft_wrap=True)
    console.print(plain_text(_say("prompt_events" if said.events else "prompt_none"), "yellow"))
    for line in said.events:
        console.print(plain_text(f"  {line}"), soft_wrap=True)
    if said.called:
        console.print(plain_text(_say("called", tools=", ".join(said.called)), "yellow"))
    console.print(Panel(plain_text(said.turn.reply), border_style="cyan"))


def _show_kept(kept: "Kept") -> None:
    from recuerdo.demo.clock import DEMO_TENANT

    console, event = out(), kept.event
    console.print()
    console.print(plain_text(_say("kept"), "bold"))
    console.print(plain_text(f"{event.id} · {event.type} · {event.status} · {event.priority}"))
    for one in event.history or ():
        fields = ", ".join(f"{name}: {old} → {new}" for name, (old, new) in one.fields.items())
        console.print(plain_text(f"  {one.at:%Y-%m-%d %H:%M} {one.action} · {fields}"), soft_wrap=True)
    console.print(plain_text("\n" + _say("ends", tenant=DEMO_TENANT, assistant=event.assistant), "dim"))
