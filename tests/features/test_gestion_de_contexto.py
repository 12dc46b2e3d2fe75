"""The five scenarios of RF-25 to RF-29, answered by the offline responder: it quotes nothing but its prompt."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from pytest_bdd import given, parsers, scenario, then, when

from recuerdo.agent import Agent
from recuerdo.turn import Turn
from tests.recuerdo.carlos import (
    CARLOS,
    CONVERSATION,
    SATURDAY,
    TSLA_POSITION,
    House,
    dialogue,
    prompt,
    sample,
    seed,
)

FEATURE = "gestion_de_contexto.feature"
DISCLAIMER = "Esto no es asesoramiento financiero."
NEAR_THE_LIMIT = 6500
SMALL_TALK = (
    "¿Cómo se ha movido el mercado esta semana? He leído que las tecnológicas siguen fuertes. ",
    "Ayer hablé con un amigo sobre fondos indexados. ¿Cómo funcionan? Me dijo que son más tranquilos. ",
    "Me interesa saber cómo se lee un gráfico de velas. A veces me pierdo con los colores. ",
)


@scenario(FEATURE, "Mantener contexto en conversación")
def test_rf_25_the_symbol_of_a_conversation_stays() -> None: ...


@scenario(FEATURE, "Recordar preferencias entre sesiones")
def test_rf_26_a_preference_outlives_the_process() -> None: ...


@scenario(FEATURE, "Enriquecimiento automático de contexto")
def test_rf_27_position_alert_and_profit_come_by_themselves() -> None: ...


@scenario(FEATURE, "Resumen de conversación larga")
def test_rf_28_a_long_conversation_is_summarised() -> None: ...


@scenario(FEATURE, "Contexto de mercado automático")
def test_rf_29_a_closed_market_is_said() -> None: ...


@dataclass
class World:
    """One person at one agent after another."""

    house: House
    stack: ExitStack
    agents: list[Agent] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    message: str = ""

    def open(self, *, preferences: dict[str, Any] | None = None, **platform: Any) -> Agent:
        agent = self.stack.enter_context(self.house.open())
        agent.run_sync(seed(agent, sample(**platform), preferences))
        self.agents.append(agent)
        return agent

    def say(self, text: str, conversation: str = CONVERSATION) -> Turn:
        agent = self.agents[-1] if self.agents else self.open()
        self.turns.append(agent.send_sync(text, user=CARLOS, conversation=conversation))
        return self.turns[-1]

    @property
    def turn(self) -> Turn:
        return self.turns[-1]


@pytest.fixture
def world(house: House) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(house, stack)


@when(parsers.parse('pregunto "{text}"'))
def ask(world: World, text: str) -> None:
    world.say(text)


# RF-25


@given("inicié conversación preguntando sobre AAPL")
def asked_about_aapl(world: World) -> None:
    world.say("¿Qué opinas de AAPL?")


@given("el agente analizó AAPL")
def analysed_aapl(world: World) -> None:
    assert world.turn.record.symbols == ["AAPL"]
    assert "185.50" in world.turn.reply


@then("el agente entiende que me refiero a AAPL")
def understood_aapl(world: World) -> None:
    assert world.turn.record.symbols == ["AAPL"]
    assert "volumen 52,340,000" in prompt(world.turn.request)
    assert "volumen 52,340,000" in world.turn.reply


@then("no necesito repetir el símbolo")
def did_not_ask(world: World) -> None:
    assert "AAPL" not in dialogue(world.turn.request)[-1]
    assert "?" not in world.turn.reply.replace("¿Y qué opinas del volumen?", "")


# RF-26


@given(parsers.parse('ayer configuré preferencia "{text}"'))
def set_yesterday(world: World, text: str) -> None:
    world.house.clock.set("2025-12-04T18:00:00-06:00")
    world.open(preferences={})
    assert DISCLAIMER not in world.say("Hola").reply
    world.say(text)


@given("cerré la aplicación")
def closed(world: World) -> None:
    world.stack.close()
    world.agents.clear()


@when("inicio nueva conversación hoy")
def new_conversation_today(world: World) -> None:
    world.house.clock.set("2025-12-05T10:30:00-06:00")
    world.open(preferences={})
    world.say("¿Cómo va AAPL?", conversation="conv-457")


@then("el agente recuerda mi preferencia")
def preference_remembered(world: World) -> None:
    assert world.turn.context["preferences"]["show_disclaimers"] is True
    assert "siempre mostrar disclaimer" in prompt(world.turn.request)


@then("incluye disclaimers automáticamente")
def disclaimer_included(world: World) -> None:
    assert world.turn.reply.count(DISCLAIMER) == 1


# RF-27


@given("tengo posición abierta en TSLA")
def holds_tsla(world: World) -> None:
    world.open(positions=[TSLA_POSITION])


@given("hay alerta activa para TSLA a $240")
def alert_at_240(world: World) -> None:
    (alert,) = sample().alerts
    assert (alert.symbol, alert.condition, alert.price) == ("TSLA", "<=", 240)


@then("el agente automáticamente incluye info de TSLA")
def tells_of_tsla(world: World) -> None:
    assert world.turn.record.symbols == ["TSLA"]
    assert "TSLA" in prompt(world.turn.request) and "245.00" in world.turn.reply


@then("menciona la alerta activa")
def tells_the_alert(world: World) -> None:
    assert "TSLA <= 240" in prompt(world.turn.request)
    assert "TSLA <= 240" in world.turn.reply


@then("muestra P&L actual")
def tells_the_profit(world: World) -> None:
    (position,) = world.turn.context["portfolio"]["positions"]
    assert position["current_pnl"] == -100.0
    assert "P&L -100.00" in prompt(world.turn.request)
    assert "P&L -100.00" in world.turn.reply


# RF-28


@given("tenemos 30 mensajes en la conversación")
def thirty_messages(world: World) -> None:
    # A second conversation of the same course tells how long the 31st message must be.
    for conversation in (CONVERSATION, "conv-457"):
        forget_memories(world)
        for number in range(15):
            text = "mi objetivo es 10% anual" if number == 1 else SMALL_TALK[number % 3] * 18
            world.say(text, conversation)
    info = world.agents[-1].run_sync(world.agents[-1].conversations.info(CONVERSATION, user=CARLOS))
    assert info is not None and info.messages_count == 30


@given("se acerca el límite de tokens")
def near_the_limit(world: World) -> None:
    words = 1000
    forget_memories(world)
    tried = world.say(long_question(words), "conv-457").record.estimate["before"]
    forget_memories(world)
    world.message = long_question(words + NEAR_THE_LIMIT - tried)


def forget_memories(world: World) -> None:
    """What one conversation taught would be recalled in the other, which then is longer than the first."""
    for agent in world.agents[-1:]:
        for memory in agent.run_sync(agent.memory.list(user=CARLOS)):
            agent.run_sync(agent.memory.forget(memory.id, user=CARLOS))


def long_question(words: int) -> str:
    return f"¿Recuerdas cuál era mi objetivo?{' hola' * words}"


@when("envío nuevo mensaje")
def send_the_31st(world: World) -> None:
    world.say(world.message)


@then("el sistema resume mensajes antiguos")
def old_messages_summarised(world: World) -> None:
    record, said = world.turn.record, dialogue(world.turn.request)
    assert record.estimate["before"] == NEAR_THE_LIMIT
    assert record.estimate["input_tokens"] <= 6000
    assert "history" in [step.block for step in record.steps]
    assert "mi objetivo es 10% anual" not in said
    assert record.summary_covers >= 31 - len(said)


@then("preserva puntos clave de la conversación")
def key_points_kept(world: World) -> None:
    summary = prompt(world.turn.request).partition("<summary>")[2].partition("</summary>")[0]
    assert "mi objetivo es 10% anual" in summary


@then("el agente responde coherentemente")
def answers_coherently(world: World) -> None:
    assert "mi objetivo es 10% anual" in world.turn.reply
    assert dialogue(world.turn.request)[-1] == world.message


# RF-29


@given("el mercado US está cerrado (es sábado)")
def us_market_closed(world: World) -> None:
    world.house.clock.set(SATURDAY)


@then("el agente indica que el mercado está cerrado")
def says_closed(world: World) -> None:
    market = world.turn.context["market"]
    assert market["status"] == "closed"
    # 2025-12-08T09:30:00-05:00 in the user's time zone.
    assert market["next_open"] == "2025-12-08T08:30:00-06:00"
    assert "El mercado de AAPL está cerrado" in world.turn.reply


@then("sugiere usar paper trading o esperar apertura")
def suggests_paper_trading(world: World) -> None:
    assert "paper trading" in world.turn.reply
    assert "esperar a la apertura (lunes 8 de diciembre de 2025, 08:30)" in world.turn.reply
