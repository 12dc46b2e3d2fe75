"""The extractor without a model: what is stated in either language, matched to types in either (LA-26, A-20)."""

from collections.abc import Sequence
from uuid import uuid4

import pytest

from recuerdo.nodes.extract_events.protocol import Extracted, Heard
from recuerdo.nodes.extract_events.rules import RulesExtractor
from recuerdo.state.key_events import EventChange, KeyEvent, NewEvent
from recuerdo.state.plan import EventType, KeyEventSettings
from recuerdo.stores.embeddings import BundledEmbedder
from recuerdo.stores.postgres.key_events.extraction import Spoken
from tests.stores.postgres.conftest import NOW

SPANISH = (
    ("procesamiento de reembolso", "El cliente espera o pide que se le devuelva dinero."),
    ("anomalía de la cuenta", "Accesos, cargos o cambios en la cuenta que el cliente no reconoce."),
    ("Envío retrasado", "Un pedido no ha llegado o llega tarde."),
    ("Producto defectuoso", "Un artículo llegó roto o no funciona."),
)
ENGLISH = (
    ("refund", "The customer asks for money back or waits for it."),
    ("account anomaly", "Logins, charges or changes of the account that the customer does not recognise."),
    ("late delivery", "An order has not arrived or is late."),
    ("faulty product", "An item came broken or does not work."),
)
STATED = [
    ("Quiero que me devuelvan el dinero del pedido 4471", 0),
    ("Me cobraron dos veces, exijo la devolución", 0),
    ("Hay un cargo en mi cuenta que no reconozco", 1),
    ("El paquete todavía no ha llegado y ya pasó una semana", 2),
    ("¿Dónde está mi envío? No me ha llegado", 2),
    ("El teléfono no funciona, no enciende", 3),
    ("I want my money back for order 4471", 0),
    ("Someone logged into my account from abroad", 1),
    ("The delivery is ten days late", 2),
    ("The headphones came damaged", 3),
]
NOTHING = [
    "Hola, buenos días",
    "Gracias, muy amable",
    "¿A qué hora abren mañana?",
    "¿Cómo pido un reembolso?",
    "¿Cuánto tarda una devolución?",
    "Si no llega el viernes, pediré que me devuelvan el dinero",
    "No hay ningún problema, todo perfecto",
    "Necesito una receta de tortilla",
    "Good morning",
    "How do refunds work?",
    "If it does not arrive I will ask for a refund",
    "No problem at all, everything is fine",
    "I need a recipe for omelette",
]


def settings(types: Sequence[tuple[str, str]]) -> KeyEventSettings:
    return KeyEventSettings(
        enabled=True, types=tuple(EventType(name=name, description=about) for name, about in types)
    )


async def read(
    *texts: str,
    types: Sequence[tuple[str, str]] = SPANISH,
    known: Sequence[KeyEvent] = (),
    role: str = "user",
) -> Extracted:
    spoken = [Spoken(uuid4(), role, text) for text in texts]  # type: ignore[arg-type]
    return await RulesExtractor(BundledEmbedder()).extract(Heard(spoken, "es", known, settings(types)))


def open_event(kind: str, summary: str, *entities: str) -> KeyEvent:
    return KeyEvent(
        uuid4(), "A", kind, summary, entities, "PENDING", "MEDIUM", 0.8, "u", "S", NOW, NOW, None, 1
    )


def created(extracted: Extracted) -> list[NewEvent]:
    return [found.event for found in extracted.found if isinstance(found.event, NewEvent)]


@pytest.mark.parametrize("types", [SPANISH, ENGLISH], ids=["es", "en"])
@pytest.mark.parametrize(("text", "kind"), STATED)
async def test_la_26_a_statement_is_an_event_of_its_type(
    text: str, kind: int, types: Sequence[tuple[str, str]]
) -> None:
    (event,) = created(await read(text, types=types))
    assert event.type == types[kind][0]
    assert 0.5 <= event.confidence <= 0.9


@pytest.mark.parametrize("types", [SPANISH, ENGLISH], ids=["es", "en"])
@pytest.mark.parametrize("text", NOTHING)
async def test_la_26_what_is_asked_supposed_denied_or_other_gives_nothing(
    text: str, types: Sequence[tuple[str, str]]
) -> None:
    assert (await read(text, types=types)).found == []


async def test_la_26_what_the_assistant_says_is_no_event() -> None:
    assert (await read("Quiero que me devuelvan el dinero", role="assistant")).found == []


async def test_im_1_the_event_has_the_users_words_what_it_is_about_and_how_urgent_it_is() -> None:
    (urgent,) = created(await read("El Pedido 4471 no ha llegado, es URGENTE"))
    assert urgent.entities == ("Pedido 4471",) and urgent.priority == "CRITICAL"
    assert urgent.summary == "El Pedido 4471 no ha llegado, es URGENTE"
    (calm,) = created(await read("El pedido 4471 no ha llegado, sin prisa"))
    assert calm.priority == "LOW"


async def test_la_26_the_same_matter_said_twice_is_one_event_and_another_number_another() -> None:
    same = await read("El pedido 4471 no ha llegado", "Mi pedido 4471 todavía no llega")
    assert len(created(same)) == 1
    other = await read("El pedido 4471 no ha llegado", "El pedido 88 tampoco ha llegado")
    assert len(created(other)) == 2


async def test_la_20_what_is_over_resolves_the_event_that_it_names() -> None:
    known = [
        open_event("Envío retrasado", "El pedido 4471 no ha llegado", "pedido 4471"),
        open_event("Envío retrasado", "El pedido 88 no ha llegado", "pedido 88"),
    ]
    (found,) = (await read("El pedido 88 ya llegó, gracias", known=known)).found
    assert (found.event_id, found.event) == (known[1].id, EventChange(status="RESOLVED"))
    (closed,) = (await read("Pueden cerrar el caso del pedido 88", known=known)).found
    assert closed.event == EventChange(status="CLOSED")
    assert (await read("Ya llegó", known=known)).found == [], "which of them, nobody can say"
    assert (await read("El pedido 88 aún no llegó", known=known)).found == []
    (english,) = (await read("My refund has finally arrived", known=[open_event("refund", "Order")])).found
    assert english.event == EventChange(status="RESOLVED")


async def test_la_26_without_the_bundled_embedder_words_decide() -> None:
    heard = Heard(
        [Spoken(uuid4(), "user", "Necesito un reembolso")], "es", [], settings((("Reembolso", ""),))
    )
    (event,) = created(await RulesExtractor(None).extract(heard))
    assert event.type == "Reembolso"


async def test_la_26_an_empty_conversation_gives_nothing() -> None:
    assert (await read()).found == []
    assert (await read("¡¿?!", "\n\n...")).found == []
