"""``recuerdo demo hotel``: rules, four eyes and evidence at the front desk of a hotel (C-39)."""

from typing import TYPE_CHECKING

from rich.panel import Panel
from rich.rule import Rule

from recuerdo.cli.console import language, out, plain_text, printable, quiet_logs, speaker
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.demo.hotel import HotelEvent
    from recuerdo.stores.postgres.evidence import Evidence
    from recuerdo.turn import Turn

sentences = load_sentences(__package__, "demo_hotel_sentences.yaml")
_say = speaker(sentences)


def show_hotel() -> None:
    """Play the scenes; the model is scripted, everything else is real."""
    from recuerdo.demo.hotel import play_hotel

    quiet_logs()
    out().print(plain_text(_say("starts"), "dim"))
    for event in play_hotel():
        _show(event)


def _show(event: "HotelEvent") -> None:
    from recuerdo.demo import hotel

    console = out()
    match event:
        case hotel.HotelSceneBegan(scene):
            console.print()
            title = f"{scene.requirement} · {scene.title.in_language(language())}"
            console.print(Rule(plain_text(title, "bold"), align="left"))
            console.print(plain_text(scene.watch.in_language(language()), "dim"))
        case hotel.HotelAsked(text):
            console.print(plain_text(f"\n> {text}", "bold"))
        case hotel.Waits(approval):
            arguments = ", ".join(f"{name}={value}" for name, value in approval.arguments.items())
            console.print(plain_text(_say("waits", tool=approval.tool, arguments=arguments), "yellow"))
        case hotel.Refused(actor, why):
            console.print(plain_text(_say("refused", actor=actor, why=why.in_language(language())), "red"))
        case hotel.Decided(decides):
            key = "approved" if decides.decision == "approve" else "rejected"
            console.print(plain_text(_say(key, actor=decides.actor), "green"))
        case hotel.HotelAnswered(turn):
            _show_turn(turn)
        case hotel.Kept(evidence):
            _show_evidence(evidence)
        case _:
            _show_learning(event)


def _show_learning(event: "HotelEvent") -> None:
    from recuerdo.demo import hotel

    console = out()
    match event:
        case hotel.Proposed(proposal):
            console.print(plain_text(proposal.wording[language()], "yellow"))
            values = {"size": proposal.sample_size, "share": f"{proposal.effect.get('share', 0) * 100:.0f}"}
            console.print(plain_text(_say("rests_on", **values), "dim"))
        case hotel.Agreed(actor):
            console.print(plain_text(_say("agreed", actor=actor), "green"))
        case hotel.InForce(revision, actor):
            console.print(plain_text(_say("in_force", revision=revision.reference, actor=actor), "green"))
        case hotel.Stopped(actor):
            console.print(plain_text(_say("stopped", actor=actor), "red"))


def _show_turn(turn: "Turn") -> None:
    console = out()
    console.print(Panel(plain_text(turn.reply), border_style="cyan"))
    packs = ", ".join(turn.record.packs)
    console.print(plain_text(_say("record", plan=f"hotel {turn.record.revision}", packs=packs), "dim"))


def _show_evidence(evidence: "tuple[Evidence, ...]") -> None:
    console = out()
    console.print()
    console.print(Rule(plain_text(_say("evidence"), "bold"), align="left"))
    for one in evidence:
        what = one.tool or one.data.get("rule") or ""
        console.print(printable(f"{one.at:%H:%M:%S} {one.kind} {what}"), markup=False, soft_wrap=True)
