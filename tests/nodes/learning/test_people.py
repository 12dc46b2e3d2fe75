"""What names a person does not stay in a case that is kept for good; what the case is about does (OR-34, IM-12)."""

import pytest

from recuerdo.nodes.learning.people import Known, without_people

CARLOS = Known("user-123", "Carlos Pérez")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Hola, me llamo Ana López y quiero un 15 %.", "Hola, me llamo [persona 1] y quiero un 15 %."),
        ("me llamo carlos perez y quiero una suite", "me llamo [persona 1] y quiero una suite"),
        ("Soy Marta. ¿Cómo va AAPL?", "Soy [persona 1]. ¿Cómo va AAPL?"),
        ("SOY MARTA Y QUIERO VENDER TSLA", "SOY [persona 1] Y QUIERO VENDER TSLA"),
        (
            "Ponla a nombre de Eva Ruiz de la Torre, cinco noches",
            "Ponla a nombre de [persona 1], cinco noches",
        ),
        ("Una reserva para Luis Vega el lunes", "Una reserva para [persona 1] el lunes"),
        ("Lo pide el Sr. Gómez, con la Sra. Díaz", "Lo pide el Sr. [persona 1], con la Sra. [persona 2]"),
        ("Huésped: Ana López. Habitación doble", "Huésped: [persona 1]. Habitación doble"),
        ("Quiero la suite.\nGracias,\nMaría José", "Quiero la suite.\nGracias,\n[persona 1]"),
        ("Va con su hijo Tomás, 6 noches", "Va con su hijo [persona 1], 6 noches"),
        ("¿Puedo hablar con María?", "¿Puedo hablar con [persona 1]?"),
        ("Mi teléfono: 55 1234 5678, gracias", "Mi teléfono: [teléfono 1], gracias"),
        ("Mi hermana Lucía pagará la suite", "Mi hermana [persona 1] pagará la suite"),
        ("Escríbeme a ana.lopez@correo.example ya", "Escríbeme a [correo 1] ya"),
        ("Mi móvil es 612 345 678 y sigue así", "Mi móvil es [teléfono 1] y sigue así"),
        ("Llámame al +34 612 34 56 78 mañana", "Llámame al [teléfono 1] mañana"),
    ],
)
def test_or_34_what_names_a_person_in_spanish_is_replaced(text: str, kept: str) -> None:
    assert without_people([text], Known()) == [kept]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Hi, my name is John O'Neil. I want 15 %.", "Hi, my name is [person 1]. I want 15 %."),
        ("my name is john smith and I want a suite", "my name is [person 1] and I want a suite"),
        ("I'm Anna, how is Tesla doing?", "I'm [person 1], how is Tesla doing?"),
        ("Book it under the name Kate Winters, please", "Book it under the name [person 1], please"),
        ("A booking for Mr. Smith and Mrs. Jones", "A booking for Mr. [person 1] and Mrs. [person 2]"),
        ("My husband is Peter Lang, he pays", "My husband is [person 1], he pays"),
        ("My wife Anna wants the suite", "My wife [person 1] wants the suite"),
        (
            "Please hurry with it.\nBest regards,\nAnna Kerr",
            "Please hurry with it.\nBest regards,\n[person 1]",
        ),
        ("You can write to john@x.example today", "You can write to [email 1] today"),
        ("Please call me at (555) 123-4567 today", "Please call me at [phone 1] today"),
    ],
)
def test_or_34_what_names_a_person_in_english_is_replaced(text: str, kept: str) -> None:
    assert without_people([text], Known()) == [kept]


@pytest.mark.parametrize(
    "text",
    [
        "¿Cómo va AAPL, y qué dice Santander?",
        "Soy cliente de Banco de Chile y quiero vender Santander",
        "Soy Español y vivo en Chile; ¿compro Microsoft?",
        "Reserva para dos personas el Lunes 12 de Enero",
        "Quiero 900 000 000 acciones a 185.50, o 1 250 000 pesos",
        "Quiero un descuento de 12 % para 5 noches en la reserva R-123456",
        "Gracias, Recuerdo",
        "I'm Long AAPL. This is Apple's best year, thanks.",
        "Thanks. Please sell Wells Fargo and buy Ford",
        "I am interested in Microsoft from Monday on",
        "Will it rain? I will mark the date.",
        "",
    ],
)
def test_or_34_symbols_firms_and_amounts_are_no_people(text: str) -> None:
    assert without_people([text], CARLOS) == [text]


def test_or_34_a_firm_with_the_name_of_a_person_stays_and_the_person_goes() -> None:
    said = "Hola, soy Carlos Santander. ¿Cómo va Santander?"
    assert without_people([said], Known()) == ["Hola, soy [persona 1]. ¿Cómo va Santander?"]
    assert without_people(["¿Vendo Santander?"], Known(name="Ana Santander")) == ["¿Vendo Santander?"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Dile a Carlos que venda", "Dile a [persona 1] que venda"),
        ("soy yo, carlos", "soy yo, [persona 1]"),
        ("¿Cómo va mi inversión, CARLOS PEREZ?", "¿Cómo va mi inversión, [persona 1]?"),
        ("Mi usuario es User-123, como siempre", "Mi usuario es [persona 1], como siempre"),
        ("El señor Pérez, o sea Carlos", "El señor [persona 1], o sea [persona 1]"),
    ],
)
def test_or_34_the_user_is_known_by_id_and_profile(text: str, kept: str) -> None:
    assert without_people([text], CARLOS) == [kept]


def test_or_34_names_of_memories_are_known_where_no_cue_stands() -> None:
    known = Known("u-77", None, ["Mi hermano Pedro Ruiz opera conmigo", "Le gusta AAPL"])
    assert without_people(["Compra lo mismo que Pedro, 5 AAPL"], known) == [
        "Compra lo mismo que [persona 1], 5 AAPL"
    ]


def test_or_34_two_people_stay_two_and_one_stays_one_through_a_conversation() -> None:
    said = ["Me llamo Ana López.", "Lo pidió el Sr. Juan Ruiz.", "Juan paga, Ana duerme. ana@x.example"]
    assert without_people(said, Known()) == [
        "Me llamo [persona 1].",
        "Lo pidió el Sr. [persona 2].",
        "[persona 2] paga, [persona 1] duerme. [correo 1]",
    ]


def test_or_34_doing_it_again_changes_nothing() -> None:
    once = without_people(["Soy Carlos Pérez, 612 345 678, c@x.example"], CARLOS)
    assert without_people(once, CARLOS) == once and "Carlos" not in once[0]
