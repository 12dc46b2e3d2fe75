"""Which share of a conversation's input tokens a provider's prefix cache could serve (issue of the context
engine, point 5; OR-18, OR-19).

``recuerdo bench prefix [--json]``. One conversation of 60 turns, made for this measurement, runs once through
the real graph with a scripted model, on a clock that moves a minute a turn. Each request of it is written in
every layout and in two naive orders, and compared with the request before in the same order: tools first,
then each message's role and content, in bytes.
"""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, get_args

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

import recuerdo
from recuerdo.demo import SAMPLE_USER
from recuerdo.demo.sample import load_sample
from recuerdo.graph.turn import TurnContext
from recuerdo.nodes.build_prompt.layouts import lay_out
from recuerdo.nodes.call_llm.local import LocalModel
from recuerdo.state.blocks import Block, Section, current, message_text
from recuerdo.state.plan import Plan
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.checkpoints import thread_of
from recuerdo.stores.settings import Layout
from recuerdo.stores.tokens import TokenCounter

BEGIN = datetime(2025, 12, 1, 15, 0, tzinfo=UTC)
TURNS = 60
PACK_TOKENS = 1_500
TOOL_TURNS = (9, 37)

QUESTIONS = (
    "Hola, me llamo Carlos. Mi objetivo es ganar un 10% anual con riesgo moderado.",
    "¿Cómo va mi inversión?",
    "¿Qué opinas de AAPL?",
    "¿Y qué opinas del volumen?",
    "¿Está cerca de su máximo del día?",
    "Explícame qué es el RSI y cómo se interpreta",
    "¿Y el MACD?",
    "¿Debería comprar TSLA ahora?",
    "¿Qué riesgo tiene frente a Apple?",
    "Dame el precio exacto de TSLA, por favor",
    "¿Cuánto falta para mi alerta?",
    "Gracias. ¿Qué eventos económicos hay esta semana?",
    "¿Cómo suelen afectar a las tecnológicas?",
    "Prefiero que me respondas breve",
    "¿Qué es una media móvil de 200 sesiones?",
    "How is my portfolio doing today?",
    "And what about the profit on Tesla?",
    "What does a stop loss do?",
    "Should I set one for AAPL at 180?",
    "Volvamos al RSI: ¿qué nivel se considera sobrecompra?",
    "¿Y sobreventa?",
    "¿Qué pasa si el mercado cierra en rojo?",
    "Analiza NVDA con velas de 4h",
    "¿Y comparada con MSFT?",
    "¿Cuál de las dos encaja mejor con mi objetivo?",
    "Resume lo que hemos dicho de Apple",
    "¿Qué volumen medio tiene?",
    "Explícame qué es el paper trading",
    "¿Puedo practicar con TSLA?",
    "¿Y con opciones?",
)
ANSWERS = (
    "Con los datos de este turno, el precio está cerca del centro de su rango del día y el volumen es algo mayor"
    " que el de ayer. Eso indica interés, pero no una dirección clara. Antes de decidir conviene mirar tres cosas:"
    " la distancia a tu alerta, el resultado de tu posición y si hay un evento económico próximo. Si lo que buscas"
    " es mantener el riesgo moderado, una entrada por partes reduce el efecto de un mal momento.",
    "El indicador compara las subidas y las bajadas medias de las últimas catorce velas y las lleva a una escala de"
    " 0 a 100. Por encima de 70 se habla de sobrecompra y por debajo de 30 de sobreventa. No es una señal por sí"
    " solo: en una tendencia fuerte puede quedarse semanas en la zona alta. Úsalo junto con el volumen y con una"
    " media móvil, y fíjate sobre todo en las divergencias con el precio.",
    "La diferencia principal está en el riesgo: una de las dos se mueve casi el doble que la otra en un día normal."
    " Para tu objetivo del 10% anual eso pesa más que la última variación. Con la posición que tienes, una caída"
    " parecida a la de la semana pasada te dejaría todavía cerca de tu precio medio. Puedes practicar el movimiento"
    " con paper trading antes de hacerlo con dinero real.",
    "Your position is in profit and the alert has not been reached. The change of the day is small and the volume is"
    " close to its average, so nothing forces a decision now. A stop loss sells when the price falls to the level"
    " you set; it limits the loss, but it can be triggered by a short dip. If you set one, leave some distance to"
    " the usual range of the day.",
    "No hay nada urgente en los datos: el mercado está abierto, tu alerta sigue a distancia y el próximo evento de"
    " impacto alto llega mañana. En esos días el rango suele ampliarse en la primera hora. Si prefieres evitarlo,"
    " espera a que se publique y decide después con el precio ya asentado.",
)


@dataclass(frozen=True)
class Sent:
    """One request as the graph made it: what every layout is written from."""

    blocks: list[Block]
    thread: list[AnyMessage]
    tools: list[dict[str, Any]]


@dataclass
class Tally:
    """What was found for one order."""

    tokens: int = 0
    repeated: int = 0
    breaks: Counter[str] = field(default_factory=Counter)


class ScriptedTrader(LocalModel):
    """Answers from a list; asks for a quote first in two of the turns."""

    turn: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted-trader"

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """See LocalModel."""
        reply = AIMessage(ANSWERS[self.turn % len(ANSWERS)])
        if self.turn in TOOL_TURNS and not isinstance(messages[-1], ToolMessage):
            call = {"name": "get_quote", "args": {"symbol": "TSLA"}, "id": f"call-{self.turn}"}
            reply = AIMessage("", tool_calls=[{**call, "type": "tool_call"}])
        return reply


def measure(data: Path | None) -> dict[str, Any]:
    """Shares in per cent of the input tokens that repeat the request before, and what broke the prefix."""
    with tempfile.TemporaryDirectory(prefix="recuerdo-bench-") as folder:
        plan = _plan()
        sent = asyncio.run(_converse(Path(folder), plan))
    count = TokenCounter().count
    orders = {name: _tally(sent, write(plan), count) for name, write in ORDERS.items()}
    return {
        "turns": TURNS,
        "requests": len(sent),
        "input_tokens": orders["tail_system"].tokens,
        "pack_tokens": PACK_TOKENS,
        "repeated_percent": {
            name: round(100 * tally.repeated / tally.tokens, 1) for name, tally in orders.items()
        },
        "breaks": {name: dict(sorted(tally.breaks.items())) for name, tally in orders.items()},
    }


def _plan() -> Plan:
    """The trading plan with a fixed text in the place of the packs."""
    plan = load_plan("trading")
    rule = "Norma {}: toda recomendación cita la fuente del dato, su hora y el riesgo que el usuario asume."
    text = " ".join(rule.format(number) for number in range(1, 200))
    pack = TokenCounter().truncate(text, PACK_TOKENS)
    return plan.model_copy(update={"instructions": (*plan.instructions, pack)})


async def _converse(folder: Path, plan: Plan) -> list[Sent]:
    """Play the conversation; every request in order."""
    model = ScriptedTrader()
    settings = recuerdo.Settings(data=folder, database_url=None, layout="tail_system")
    now = BEGIN
    opening = recuerdo.open_agent(settings, plan=plan, model=model, clock=lambda: now)
    sent: list[Sent] = []
    async with opening as agent:
        await load_sample(agent.services, settings.tenant, BEGIN)
        for turn in range(TURNS):
            now = BEGIN + timedelta(minutes=turn)
            model.turn = turn
            sent += await _turn(agent, QUESTIONS[turn % len(QUESTIONS)])
    return sent


async def _turn(agent: recuerdo.Agent, text: str) -> list[Sent]:
    """Run one turn and take the state as it was when each request had been built."""
    tenant = agent.services.settings.tenant
    sent: list[Sent] = []
    async for state in agent.graph.astream(
        {"messages": [HumanMessage(text)]},
        {"configurable": {"thread_id": thread_of(tenant, "bench")}},
        context=TurnContext(user=SAMPLE_USER, conversation="bench", tenant=tenant),
        stream_mode="values",
        durability="exit",
    ):
        requests = (state.get("work") or {}).get("requests", [])
        if len(requests) > len(sent):
            sent.append(Sent(state["work"]["blocks"], state["messages"], requests[-1]["tools"]))
    return sent


Write = Callable[[Sent], list[AnyMessage]]


def _in_layout(layout: Layout) -> Callable[[Plan], Write]:
    return lambda plan: lambda sent: lay_out(sent.blocks, sent.thread, plan, layout)


def _naive(first: Sequence[str]) -> Callable[[Plan], Write]:
    """One leading system message, the blocks named ``first`` at its top, then the others as they come."""

    def write(sent: Sent) -> list[AnyMessage]:
        in_front = [b for name in first for b in sent.blocks if b["name"] == name]
        behind = [b for b in sent.blocks if b["name"] not in first]
        texts = [current(block)["text"] for block in [*in_front, *behind]]
        system = SystemMessage("\n".join(text for text in texts if text))
        return [system, *_messages(sent, "history"), *_messages(sent, "message")]

    return lambda plan: write


def _messages(sent: Sent, section: Section) -> list[AnyMessage]:
    ids = {m.id: m for b in sent.blocks if b["section"] == section for m in current(b)["messages"]}
    return [ids[message.id] for message in sent.thread if message.id in ids]


ORDERS: dict[str, Callable[[Plan], Write]] = {
    **{layout: _in_layout(layout) for layout in get_args(Layout)},
    "naive_clock_first": _naive(["market"]),
    "naive_memory_and_clock_first": _naive(["memories", "market"]),
}


def _tally(sent: Sequence[Sent], write: Write, count: Callable[[str], int]) -> Tally:
    tally = Tally()
    before = ""
    written = [write(one) for one in sent]
    for one, messages in zip(sent, written, strict=True):
        text = _serialised(one.tools, messages)
        tally.tokens += count(text)
        tally.repeated += count(_common(before, text))
        before = text
    for (old, was), (new, now) in pairwise(zip(sent, written, strict=True)):
        if cause := _cause(old, was, new, now):
            tally.breaks[cause] += 1
    return tally


def _serialised(tools: list[dict[str, Any]], messages: Sequence[AnyMessage]) -> str:
    return "\n".join([json.dumps(tools, ensure_ascii=False), *map(_line, messages)])


def _common(one: str, other: str) -> str:
    """The longest beginning that both have."""
    same = (place for place, (a, b) in enumerate(zip_longest(one, other)) if a != b)
    return one[: next(same, len(one))]


def _line(message: AnyMessage | None) -> str:
    return f"<|{message.type}|>\n{message_text(message)}" if message else ""


def _cause(old: Sent, was: Sequence[AnyMessage], new: Sent, now: Sequence[AnyMessage]) -> str:
    """Why a request does not repeat all that the one before had up to the end of its history; empty if it does."""
    pairs = ((_line(a), _line(b)) for a, b in zip_longest(was, now))
    place = next(place for place, (a, b) in enumerate(pairs) if a != b)
    if place == 0:
        one, other = _line(was[0]), _line(now[0])
        offset = len(_common(one, other))
        return (
            _block_at(offset, other, new.blocks) if offset == len(one) else _block_at(offset, one, old.blocks)
        )
    if place > len(_messages(old, "history")):
        return ""
    gone = was[place]
    is_trace = isinstance(gone, ToolMessage) or (isinstance(gone, AIMessage) and bool(gone.tool_calls))
    return "tool trace" if is_trace else "window cut"


def _block_at(offset: int, text: str, blocks: Sequence[Block]) -> str:
    """The block whose text stands at ``offset`` of the leading message; the text of the history is the summary."""
    named = {current(b)["text"]: b["name"].partition(":")[0] for b in blocks if current(b)["text"]}
    for part, name in named.items():
        start = text.find(part)
        if start - 1 <= offset < start + len(part):
            return "summary" if name == "history" else name
    return "context"
