"""Recall by meaning and by words, on every path: the scan, the index, and with either half away."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

import numpy as np
import pytest

from recuerdo.state.errors import ScopeError, StoreError
from recuerdo.state.sentences import Sentence
from recuerdo.stores.chroma import Hit, MemoryIndex, NoIndex, VectorItem
from recuerdo.stores.embeddings import BundledEmbedder
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import Memories, NewMemory, write_memories
from recuerdo.stores.postgres.retention import delete_expired, forget_user
from recuerdo.stores.postgres.turns import NewTurn, TurnLog
from recuerdo.stores.recall import search
from recuerdo.stores.recall.analysis import analyse, query_terms
from recuerdo.stores.recall.dates import NamedDate, named_dates, nearness
from recuerdo.stores.recall.lexical import lexical_scores
from recuerdo.stores.recall.neighbours import Neighbours
from recuerdo.stores.recall.search import Recall

NOW = datetime(2025, 12, 5, tzinfo=UTC)
AWAY = Sentence(es="No está.", en="It is away.")
FILLER = ("Vive en Guadalajara", "He plays the violin", "Su perro se llama Bruno", "Works at a hospital")


class Blind:
    """Sees no difference in meaning, so the words decide."""

    name, dimensions = "blind", 2

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    async def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


class AwayEmbedder(Blind):
    async def embed_query(self, text: str) -> list[float]:
        raise StoreError(AWAY)


class FailingIndex(MemoryIndex):
    async def query(
        self, tenant: str, assistant: str, user: str, embedding: Sequence[float], limit: int
    ) -> list[Hit]:
        raise StoreError(AWAY)


class LyingIndex(MemoryIndex):
    """Answers with everybody's vectors, whoever asks."""

    async def query(
        self, tenant: str, assistant: str, user: str, embedding: Sequence[float], limit: int
    ) -> list[Hit]:
        return [Hit(key, 1.0) for items in self._collections.values() for key in items]


class House:
    """One database and one index, searched by anybody."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.index: MemoryIndex | NoIndex = MemoryIndex()
        self.embedder: Blind | BundledEmbedder = Blind()
        self.missing: Sentence | None = None

    async def add(
        self, *texts: str, tenant: str = "t1", assistant: str = "A1", user: str = "u1", language: str = "es",
        at: datetime = NOW, conversation: str | None = None, positions: Sequence[int] = (),
    ) -> list[UUID]:  # fmt: skip
        vectors = await self.embedder.embed(texts)
        places = positions or range(len(texts))
        ids = []
        for text, vector, place in zip(texts, vectors, places, strict=True):
            memory = NewMemory(
                "note", text, language, 1.0, vector, self.embedder.name,
                conversation=conversation, position=place if conversation else None,
            )  # fmt: skip
            added = await Memories(self.database, tenant).add(assistant, user, memory, at)
            if self.index.unavailable is None:
                await self.index.upsert(tenant, assistant, [VectorItem(str(added.id), user, vector)])
            ids.append(added.id)
        return ids

    async def find(
        self, question: str, limit: int = 10, *, tenant: str = "t1", assistant: str = "A1", user: str = "u1",
        now: datetime = NOW,
    ) -> list[str]:  # fmt: skip
        recall = Recall(self.database, self.index, self.embedder, tenant)
        found = await recall.search(assistant, user, question, now, limit)
        self.missing = recall.missing
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        return [one.memory.text for one in found]


@pytest.fixture
def house(database: Database) -> House:
    return House(database)


@pytest.fixture(params=["scan", "index", "index away", "index failing"])
def any_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, house: House) -> House:
    """Each way that similarities are come by."""
    if request.param != "scan":
        monkeypatch.setattr(search, "SCANNED_AT_MOST", 0)
    if request.param == "index away":
        house.index = NoIndex(AWAY)
    if request.param == "index failing":
        house.index = FailingIndex()
    return house


# Words


@pytest.mark.parametrize(
    ("text", "language", "question"),
    [
        ("Le preocupa la inflación", "es", "que dije de la inflacion"),
        ("Le preocupa la inflacion", "es", "¿qué dije de la INFLACIÓN?"),
        ("Tiene una compañía de transporte", "es", "sus COMPAÑIAS"),
        ("Compró acciones de energía", "es", "¿qué acción comprar?"),
        ("Prefiere gráficos de velas", "es", "¿qué prefiero ver?"),
        ("Invirtió con su hermano", "es", "invertir"),
        ("Cumple años en mayo", "es", "¿CUÁNTOS AÑOS CUMPLE?"),
        ("She bought a house in Austin", "en", "What did she buy?"),
        ("Likes concise responses", "en", "RESPONSE"),
        ("Su son cubano favorito", "en", "¿qué son le gusta?"),
        ("My son had an accident", "en", "what happened to my son?"),
        ("Asked about the ETF of Vanguard", "en", "¿qué etf me explicaste?"),
        ("Usa el RSI y el MACD", "es", "what did I say about the rsi"),
        ("Le interesan los earnings de NVDA", "es", "when are the earnings?"),
    ],
)
async def test_rf_10_fault_18_words_are_found_in_both_languages(
    house: House, text: str, language: str, question: str
) -> None:
    await house.add(*FILLER)
    await house.add(text, language=language)
    assert (await house.find(question))[0] == text


def words_in_common(one: str, other: str, language: str = "es") -> int:
    have = analyse(one, language).terms
    return sum(bool(lexical_scores([have], [terms], ALONE).coverage[0]) for terms in query_terms(other))


ALONE = Neighbours.of([(None, None)])


def test_fault_18_enye_is_a_letter_of_its_own() -> None:
    assert words_in_common("el año pasado", "AÑOS") == 1
    assert words_in_common("el año pasado", "ano") == 0
    assert words_in_common("el an\u0303o pasado", "año") == 1


@pytest.mark.parametrize(
    "text", ["", "¿qué es lo que me has...?", "what is it that I would have?", "¿? ...", "\0"]
)
def test_words_that_say_nothing_are_not_searched_for(text: str) -> None:
    assert query_terms(text) == []
    assert analyse(text, "es").terms == b""


def test_a_long_question_is_read_from_its_beginning() -> None:
    assert len(query_terms(" ".join(f"palabra{number}" for number in range(5_000)))) < 250


def test_english_words_that_only_look_alike_stay_apart() -> None:
    assert words_in_common("take care of the plane", "car plan", "en") == 0


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("¿Te gusta el RSI?", True),
        ("Do you? [a photo of a dog]", True),
        ("¿Qué es? Un índice.", False),
        ("Mide la fuerza del precio entre 0 y 100 y avisa de excesos. ¿Sigo?", False),
        ("?", True),
        ("", False),
    ],
)
def test_a_text_that_asks(text: str, asks: bool) -> None:
    assert analyse(text, "es").asks is asks


async def test_a_memory_that_answers_comes_before_one_that_asks(house: House) -> None:
    await house.add("¿Le gusta el ajedrez?", "Le gusta el ajedrez rápido")
    assert await house.find("ajedrez", 1) == ["Le gusta el ajedrez rápido"]


def test_lexical_scores_are_shares() -> None:
    random = np.random.default_rng(4)
    texts = [
        " ".join(f"w{word}" for word in random.integers(0, 9, size)) for size in random.integers(0, 30, 40)
    ]
    places = [(f"c{place // 7}", place % 7) if place < 30 else (None, None) for place in range(40)]
    scores = lexical_scores(
        [analyse(text, "en").terms for text in texts], query_terms("w1 w2 w3 unknown"), Neighbours.of(places)
    )
    for values in (scores.match, scores.coverage, scores.conversation):
        assert values.shape == (40,)
        assert 0 < values.max() <= 1
        assert values.min() >= 0
    assert not scores.conversation[30:].any()


# Meaning


async def test_et_4_the_two_preferences_and_not_the_third(house: House) -> None:
    house.embedder = BundledEmbedder()
    wanted = ["User prefers dark theme and 24-hour time format", "User likes concise responses"]
    await house.add(*wanted, "Supplier list is in Excel", language="en")
    assert sorted(await house.find("user preferences", 2)) == sorted(wanted)


async def test_rf_10_the_other_language_is_found_by_meaning(house: House) -> None:
    house.embedder = BundledEmbedder()
    await house.add(*FILLER, "No le gustan las criptomonedas", "Su esposa es médica")
    await house.add("Wants to pay off the mortgage early", language="en")
    for question, text in [
        ("what is my opinion of cryptocurrency?", "No le gustan las criptomonedas"),
        ("my wife's profession", "Su esposa es médica"),
        ("quiero liquidar la hipoteca", "Wants to pay off the mortgage early"),
    ]:
        assert (await house.find(question))[0] == text


async def test_rf_10_the_pair_of_yesterday_is_found(house: House) -> None:
    house.embedder = BundledEmbedder()
    pair = "Pregunta: ¿qué es RSI? Respuesta: mide la fuerza del precio entre 0 y 100."
    await house.add(*FILLER, pair, at=NOW - timedelta(days=1))
    assert await house.find("¿recuerdas lo que me explicaste del RSI?", 1) == [pair]


# Conversations and dates


async def test_an_answer_is_found_by_the_words_of_what_was_asked_before_it(house: House) -> None:
    await house.add(*FILLER, conversation="c0")
    await house.add("Which instrument do you play?", "The violoncello", language="en", conversation="c1")
    assert "The violoncello" in await house.find("instrument", 2)


async def test_neighbours_are_of_one_conversation_and_near(house: House) -> None:
    await house.add("Habló del ajedrez", "Lejos", conversation="c1", positions=[1, 9])
    await house.add("Otra conversación", conversation="c2", positions=[2])
    await house.add("De otro usuario", user="u2", conversation="c1", positions=[2])
    await house.add("Sin conversación")
    spread = Neighbours.of([("c1", 1), ("c1", 9), ("c2", 2), (None, None)]).spread(np.array([1.0, 0, 0, 0]))
    assert spread.tolist() == [1, 0, 0, 0]
    assert (await house.find("ajedrez"))[0] == "Habló del ajedrez"
    assert "De otro usuario" not in await house.find("ajedrez")


def test_neighbours_count_by_their_distance() -> None:
    row = Neighbours.of([("c", place) for place in range(5)])
    assert row.spread(np.array([0.0, 0, 1, 0, 0])).tolist() == [0.15, 0.2, 1, 0.5, 0.25]
    same_turn = Neighbours.of([("c", 3), ("c", 3)])
    assert same_turn.spread(np.array([1.0, 0])).tolist() == [1, 0.5]


async def test_memories_of_a_turn_stand_where_it_does(database: Database) -> None:
    log = TurnLog(database, "t1")
    turn = NewTurn(
        id=uuid4(), conversation="conv-456", assistant="A1", user="u1", parent=None, mode="live", at=NOW,
        language="es", message_id="m1", text="hola",
    )  # fmt: skip
    number = await log.begin(turn, lease=timedelta(seconds=60), wait=timedelta())
    async with database.transaction() as connection:
        await write_memories(connection, "t1", "A1", "u1", [NewMemory("note", "hola", "es")], NOW, turn.id)
    (row,) = await Memories(database, "t1").search_rows("A1", "u1", NOW, "blind", 9)
    assert (row.conversation, row.position) == ("conv-456", number)


@pytest.mark.parametrize(
    ("question", "dates"),
    [
        ("What did she do in May 2023?", [NamedDate(5, 2023)]),
        ("qué dije en mayo de 2023", [NamedDate(5, 2023)]),
        ("el 5 de diciembre del 2025", [NamedDate(12, 2025, 5)]),
        ("on 8th December, 2023", [NamedDate(12, 2023, 8)]),
        ("on July 5, 2023", [NamedDate(7, 2023, 5)]),
        ("2025-12-05 o 2025-11", [NamedDate(12, 2025, 5), NamedDate(11, 2025)]),
        ("¿y en OCTUBRE?", [NamedDate(10)]),
        ("what may I do? we march on", []),
        ("on 31 February 2023", []),
        ("2025-13-45", []),
        ("", []),
    ],
)
def test_dates_that_a_question_names(question: str, dates: list[NamedDate]) -> None:
    assert named_dates(question) == dates


def test_memories_near_a_named_date_count_more() -> None:
    days = [date(2023, 5, 3), date(2023, 5, 5), date(2023, 5, 20), date(2023, 6, 2), date(2022, 5, 3)]
    written = [datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days]
    assert nearness([NamedDate(5, 2023, 3)], written).tolist() == [2, 1.5, 1, 0, 0]
    assert nearness([NamedDate(5)], written).tolist() == [1, 1, 1, 0, 1]


async def test_the_month_of_the_question_decides_between_equals(house: House) -> None:
    for month in (9, 10, 11):
        await house.add(f"Compró bonos ({month})", at=datetime(2025, month, 20, tzinfo=UTC))
    assert (await house.find("¿qué bonos compró en octubre?"))[0] == "Compró bonos (10)"


# Scope, expiry, deletion


async def test_c_11_fault_5_6_or_6_nothing_foreign_on_any_path(any_path: House) -> None:
    await any_path.add("el RSI, mío")
    await any_path.add("el RSI, de otro usuario", user="u2")
    await any_path.add("el RSI, de otro asistente", assistant="A2")
    await any_path.add("el RSI, de otro cliente", tenant="t2")
    assert await any_path.find("RSI") == ["el RSI, mío"]
    assert await any_path.find("RSI", user="u2") == ["el RSI, de otro usuario"]
    assert await any_path.find("RSI", assistant="A2") == ["el RSI, de otro asistente"]
    assert await any_path.find("RSI", tenant="t2") == ["el RSI, de otro cliente"]
    assert await any_path.find("RSI", user="u3") == []


async def test_fault_5_an_index_that_lies_about_the_owner(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SCANNED_AT_MOST", 0)
    house.index = LyingIndex()
    await house.add("mío")
    await house.add("ajeno", user="u2")
    await house.add("ajeno", tenant="t2")
    assert await house.find("ajeno") == ["mío"]


async def test_c_11_missing_scope_is_refused(house: House) -> None:
    with pytest.raises(ScopeError):
        await house.find("RSI", tenant="")
    for scope in ({"user": ""}, {"assistant": ""}):
        with pytest.raises(ScopeError):
            await house.find("RSI", **scope)


async def test_im_53_fault_10_expired_does_not_come_back_before_the_sweep(any_path: House) -> None:
    await any_path.add("el RSI de hace 90 días", at=NOW - timedelta(days=90))
    await any_path.add("el RSI de hace 89 días", at=NOW - timedelta(days=89))
    assert await any_path.find("RSI") == ["el RSI de hace 89 días"]
    await delete_expired(any_path.database, NOW, actor="worker")
    assert await any_path.find("RSI") == ["el RSI de hace 89 días"]


async def test_fault_8_deleted_does_not_come_back_while_its_vector_is_in_the_index(any_path: House) -> None:
    gone, _ = await any_path.add("el RSI olvidado", "el RSI que queda")
    await Memories(any_path.database, "t1").forget(gone, "A1", "u1", NOW)
    assert await any_path.find("RSI") == ["el RSI que queda"]
    await forget_user(any_path.database, "t1", "u1", NOW)
    assert await any_path.find("RSI") == []


async def test_inactive_does_not_come_back(any_path: House) -> None:
    await any_path.add("el RSI")
    async with any_path.database.connection() as connection:
        await connection.execute("update recuerdo.user_memory set active = false")
    assert await any_path.find("RSI") == []


# How many


async def test_a_37_all_are_returned_however_little_alike(any_path: House) -> None:
    await any_path.add("el RSI", "el clima", "la cena")
    found = await any_path.find("RSI", 50)
    assert found[0] == "el RSI"
    assert len(found) == 3
    assert len(await any_path.find("RSI", 2)) == 2
    assert await any_path.find("RSI", 0) == []


@pytest.mark.parametrize("question", ["", "?", "\0\ud800", "😀", "x" * 100_000, "'; drop table --"])
async def test_any_question_is_taken(house: House, question: str) -> None:
    house.embedder = BundledEmbedder()
    await house.add("el RSI")
    assert await house.find(question) == ["el RSI"]


# What is away


async def test_im_32_without_the_index_recall_works_and_says_so(any_path: House) -> None:
    await any_path.add(*FILLER, "el RSI")
    assert (await any_path.find("RSI"))[0] == "el RSI"
    works = type(any_path.index) is MemoryIndex
    assert any_path.missing == (None if works else AWAY)


async def test_im_32_without_the_embedder_the_words_are_left(house: House) -> None:
    await house.add(*FILLER, "el RSI")
    house.embedder = AwayEmbedder()
    assert (await house.find("RSI"))[0] == "el RSI"
    assert house.missing == AWAY


async def test_no_embedding_for_a_user_without_memories(house: House) -> None:
    house.embedder = AwayEmbedder()
    assert await house.find("RSI") == []
    assert house.missing is None


async def test_fault_11_vectors_of_another_model_are_not_compared(house: House) -> None:
    await house.add(*FILLER, "Su esposa es médica")
    house.embedder = BundledEmbedder()
    assert (await house.find("esposa"))[0] == "Su esposa es médica"
    await house.add("No le gustan las criptomonedas", "Le gusta cocinar", "Tiene dos gatos")
    assert (await house.find("bitcoin"))[0] == "No le gustan las criptomonedas"


# What is kept


async def test_rows_that_another_analyzer_wrote_are_found_too(house: House) -> None:
    await house.add(*FILLER, "Le preocupa la inflación")
    async with house.database.connection() as connection:
        await connection.execute("update recuerdo.user_memory set terms = '', analyzer = 'older'")
    assert (await house.find("inflacion"))[0] == "Le preocupa la inflación"
    async with house.database.connection() as connection:
        await connection.execute("update recuerdo.user_memory set terms = null, analyzer = null, asks = null")
    assert (await house.find("inflacion"))[0] == "Le preocupa la inflación"


async def test_a_replay_with_another_text_is_found_by_its_new_words(database: Database) -> None:
    turn = uuid4()
    for text in ("Prefiere velas", "Prefiere barras"):
        async with database.transaction() as connection:
            await write_memories(connection, "t1", "A1", "u1", [NewMemory("note", text, "es")], NOW, turn)
    (row,) = await Memories(database, "t1").search_rows("A1", "u1", NOW, "blind", 9)
    assert row.terms == analyse("Prefiere barras", "es").terms


async def test_rf_33_terms_hold_nothing_sensitive(database: Database) -> None:
    memory = NewMemory("note", "mi tarjeta es 4111 1111 1111 1111", "es")
    added = await Memories(database, "t1").add("A1", "u1", memory, NOW)
    (row,) = await Memories(database, "t1").search_rows("A1", "u1", NOW, "blind", 9)
    assert row.terms == analyse(added.text, "es").terms
    assert not np.isin(np.frombuffer(row.terms or b"", "<u4"), query_terms("4111 1111")).any()
