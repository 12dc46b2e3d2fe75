"""``recuerdo demo memory``: what is learnt, recalled, corrected, expires and is forgotten, with what prompts hold."""

from typing import TYPE_CHECKING

from rich.panel import Panel
from rich.rule import Rule

from recuerdo.cli.console import language, out, plain_text, quiet_logs, speaker
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recuerdo.demo.memory import MemoryEvent, MemorySaid, Ranked, Stands, ToolCalled
    from recuerdo.demo.memory_script import MemoryScene
    from recuerdo.memory import Explanation
    from recuerdo.stores.postgres.audit import AuditEntry

sentences = load_sentences(__package__, "demo_memory_sentences.yaml")
_say = speaker(sentences)


def show_memory() -> None:
    """Play the demo and show it."""
    from recuerdo.demo.clock import MEMORY_TENANT
    from recuerdo.demo.memory import play_memory

    quiet_logs()
    _line(_say("starts"), "dim")
    for event in play_memory():
        _show(event)
    _line("\n" + _say("ends", tenant=MEMORY_TENANT), "dim")


def _show(event: "MemoryEvent") -> None:
    from recuerdo.demo import memory

    match event:
        case memory.MemorySceneBegan(scene):
            _show_scene(scene)
        case memory.MemoryVisitBegan(at):
            _line("\n" + _say("clock", at=at.isoformat()), "dim")
        case memory.MemorySaid():
            _show_turn(event)
        case memory.Ranked():
            _show_ranking(event)
        case memory.Stands():
            _show_store(event)
        case memory.Explained(explanation):
            _show_why(explanation)
        case memory.Audited(text, entries):
            _line("\n" + _say("audit", text=text), "bold")
            _show_entries(entries)
        case _:
            _show_deed(event)


def _show_deed(event: "MemoryEvent") -> None:
    from recuerdo.demo import memory

    match event:
        case memory.PublishRefused(actor, why):
            _line("\n" + _say("refused", actor=actor, why=why.in_language(language())), "red")
        case memory.Published(actor, reason, published):
            values = {"text": published.text, "status": published.status}
            _line("\n" + _say("published", actor=actor, reason=reason, **values), "green")
        case memory.Exported(user, rows):
            counts = ", ".join(f"{table} {count}" for table, count in rows.items() if count)
            key = "exported" if counts else "exported_none"
            _line("\n" + _say(key, user=user, rows=counts))
        case memory.AllForgotten(user, gone):
            counted = {"count": gone.remembered, "conversations": gone.conversations}
            _line("\n" + _say("all_forgotten", user=user, **counted), "green")


def _show_scene(scene: "MemoryScene") -> None:
    console = out()
    console.print()
    title = f"{scene.requirement} · {scene.title.in_language(language())}"
    console.print(Rule(plain_text(title, "bold"), align="left"))
    _line(scene.watch.in_language(language()), "dim")


def _show_turn(said: "MemorySaid") -> None:
    _line(f"\n{said.user}> {said.text}", "bold")
    _line(_say("prompt" if said.recalled else "prompt_none"), "yellow")
    for line in said.recalled:
        _line(f"  {line}")
    for call in said.calls:
        _show_call(call)
    out().print(Panel(plain_text(said.turn.reply), border_style="cyan"))
    for line in _changes(said):
        _line(f"  {line}", "green")
    if said.during is not None:
        asked = {"messages": len(said.during.thread), "calls": len(said.during.calls)}
        _line("  " + _say("level_1", intent=said.during.intent, **asked), "dim")
        if said.after is None:
            _line("  " + _say("level_1_gone"), "dim")


def _show_call(call: "ToolCalled") -> None:
    arguments = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    _line(f"  MemoryTool({arguments})", "yellow")
    for name, text in call.answer.items():
        _line(f"    {name}: {text}")


def _changes(said: "MemorySaid") -> list[str]:
    """What the turn changed of what is known, as its record says."""
    record = said.turn.record
    learnt = [one.value if one.type == "memory" else f"{one.key} = {one.value}" for one in record.learnt]
    return [
        *(_say("learnt", what=what) for what in learnt),
        *(_say("confirmed", quote=one.quote) for one in record.confirmed),
        *(_say("forgotten", quote=one.quote) for one in record.forgotten),
    ]


def _show_ranking(ranked: "Ranked") -> None:
    if not ranked.hits:
        return
    _line(_say("ranked"), "yellow")
    for hit in ranked.hits:
        mark = "*" if str(hit.memory.id) in ranked.in_prompt else " "
        _line(f"  {mark} {hit.score:6.2f}  {hit.memory.text}")


def _show_store(stands: "Stands") -> None:
    from recuerdo.cli.memory_view import Remembered

    _line("\n" + _say("stands", user=stands.user), "bold")
    remembered = Remembered(stands.user, stands.preferences, list(stands.memories), list(stands.symbols))
    out().print(remembered.view())


def _show_why(why: "Explanation") -> None:
    _line("\n" + _say("why", text=why.memory.text), "bold")
    if why.message is not None:
        _line("  " + _say("why_said", said=why.message.content))
    for old in why.history:
        _line("  " + _say("why_before", at=f"{old.at:%Y-%m-%d}", text=old.text))
    _show_entries(why.audit)


def _show_entries(entries: "Sequence[AuditEntry]") -> None:
    for one in entries:
        statuses = f" · {one.previous_status} → {one.new_status}" if one.new_status else ""
        _line(f"  {one.at:%Y-%m-%d %H:%M} {one.action} · {one.actor}{statuses}")


def _line(text: str, style: str = "") -> None:
    out().print(plain_text(text, style), soft_wrap=True)
