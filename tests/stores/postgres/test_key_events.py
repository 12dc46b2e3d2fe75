"""Key events over both stores: owner, history, order, expiry, replay, redaction (LA-18 to LA-23, IM-1 to IM-3)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.state.key_events import (
    EventChange,
    EventFilter,
    KeyEvent,
    NewEvent,
    Origin,
    Owner,
    rank,
)
from recuerdo.stores.memory_store.events import InMemoryKeyEvents, KeptEvents, KeyEvents
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.key_events import OperatorEvents, OperatorFilter, PostgresKeyEvents
from recuerdo.stores.postgres.retention import forget_user

DAY_0 = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)
U_IN_S1, U_IN_S2 = Owner("U", "S1"), Owner("U", "S2")
V = Owner("V", "S3")
NOBODY_IN_S1, NOBODY_IN_S2 = Owner(None, "S1"), Owner(None, "S2")
REFUND = NewEvent("Reembolso", "El pedido 4471 no llegó")

MakeEvents = Callable[..., KeyEvents]


@pytest.fixture(params=["postgres", "in_memory"])
def events_of(request: pytest.FixtureRequest) -> MakeEvents:
    """Key events of tenant t1, of assistant A1 or the one named, in both stores."""
    if request.param == "postgres":
        database: Database = request.getfixturevalue("database")
        return lambda assistant="A1", **given: PostgresKeyEvents(database, "t1", assistant, **given)
    kept = KeptEvents()
    return lambda assistant="A1", **given: InMemoryKeyEvents("t1", assistant, kept=kept, **given)


@pytest.fixture
def events(events_of: MakeEvents) -> KeyEvents:
    return events_of()


def by(owner: Owner, at: datetime = DAY_0, **given: Any) -> Origin:
    return Origin(at, owner.user or str(owner.session), owner.session, **given)


def later(**passed: float) -> datetime:
    return DAY_0 + timedelta(**passed)


async def add(events: KeyEvents, owner: Owner = U_IN_S1, at: datetime = DAY_0, **fields: Any) -> KeyEvent:
    return await events.create(owner, replace(REFUND, **fields), by(owner, at))


async def close(events: KeyEvents, event: KeyEvent, at: datetime) -> None:
    assert await events.update(U_IN_S1, event.id, EventChange(status="CLOSED"), by(U_IN_S1, at))


async def test_la_18_im_1_an_event_of_one_session_is_found_in_the_next(events: KeyEvents) -> None:
    made = await add(events)
    (found,) = await events.open(U_IN_S2, 5)
    assert found == replace(made, history=None)
    assert (found.id, found.type, found.status) == (made.id, "Reembolso", "PENDING")
    assert (found.summary, found.entities) == ("El pedido 4471 no llegó", ())
    assert (found.priority, found.confidence, found.user, found.session) == ("MEDIUM", 1, "U", "S1")
    assert found.created_at == found.updated_at == DAY_0
    (revision,) = made.history or ()
    assert (revision.action, revision.actor, revision.session) == ("created", "U", "S1")


async def test_la_20_im_2_the_history_has_the_changes_of_both_sessions(events: KeyEvents) -> None:
    made = await add(events)
    await events.update(U_IN_S1, made.id, EventChange(status="IN_PROGRESS"), by(U_IN_S1, later(hours=1)))
    change = EventChange(summary="Devuelto", status="RESOLVED")
    after = await events.update(U_IN_S2, made.id, change, by(U_IN_S2, later(days=2)))
    assert after and (after.summary, after.status, after.updated_at) == (
        "Devuelto",
        "RESOLVED",
        later(days=2),
    )
    assert [(r.number, r.action, r.session) for r in after.history or ()] == [
        (1, "created", "S1"),
        (2, "updated", "S1"),
        (3, "updated", "S2"),
    ]
    assert [r.fields.get("status") for r in after.history or ()][1:] == [
        ("PENDING", "IN_PROGRESS"),
        ("IN_PROGRESS", "RESOLVED"),
    ]
    assert (await events.query(U_IN_S1, EventFilter(), later(days=3))).total == 1
    assert await events.get(U_IN_S1, made.id, later(days=3)) == after


async def test_la_20_of_two_sessions_that_update_at_once_nothing_is_lost(events: KeyEvents) -> None:
    made = await add(events)
    changes = [
        *(EventChange(entities=(f"pedido {number}",)) for number in range(6)),
        EventChange(summary="Nuevo resumen"),
        EventChange(status="IN_PROGRESS"),
    ]
    await asyncio.gather(
        *(
            events.update(owner, made.id, change, by(owner, later(seconds=place)))
            for place, change in enumerate(changes)
            for owner in ((U_IN_S1, U_IN_S2)[place % 2],)
        )
    )
    after = await events.get(U_IN_S1, made.id, later(hours=1))
    assert after and (after.summary, after.status) == ("Nuevo resumen", "IN_PROGRESS")
    history = after.history or ()
    assert [revision.number for revision in history] == list(range(1, len(changes) + 2))
    entities = [revision.fields["entities"] for revision in history if "entities" in revision.fields]
    assert {tuple(new) for _, new in entities} == {(), *((f"pedido {n}",) for n in range(6))}
    # Each change begins where the one before it ended.
    assert [old for old, _ in entities[1:]] == [new for _, new in entities[:-1]]


async def test_la_21_what_is_another_users_reads_as_absent_and_cannot_be_changed(events: KeyEvents) -> None:
    made = await add(events)
    for stranger in (V, NOBODY_IN_S1, Owner(None, "U")):
        assert await events.get(stranger, made.id, DAY_0) is None
        assert await events.update(stranger, made.id, EventChange(status="CLOSED"), by(stranger)) is None
        assert await events.open(stranger, 5) == []
        assert (await events.query(stranger, EventFilter(closed=True), DAY_0)).total == 0
    assert await events.get(V, uuid4(), DAY_0) is None
    assert (await events.get(U_IN_S2, made.id, DAY_0)) == made


async def test_la_21_another_tenant_and_another_assistant_see_nothing(database: Database) -> None:
    made = await add(PostgresKeyEvents(database, "t1", "A1"))
    for tenant, assistant in (("t2", "A1"), ("t1", "A2")):
        foreign = PostgresKeyEvents(database, tenant, assistant, shared=tenant == "t2")
        assert await foreign.get(U_IN_S1, made.id, DAY_0) is None
        assert await foreign.open(U_IN_S1, 5) == []


async def test_a_23_c_34_shared_events_are_those_of_every_assistant(events_of: MakeEvents) -> None:
    made = await add(events_of("A1"))
    shared = events_of("A2", shared=True)
    assert [event.id for event in await shared.open(U_IN_S2, 5)] == [made.id]
    after = await shared.update(U_IN_S2, made.id, EventChange(status="RESOLVED"), by(U_IN_S2))
    assert after and after.assistant == "A1"
    assert await events_of("A2").open(U_IN_S2, 5) == []


async def test_la_22_a_18_a_19_open_ones_in_order_and_never_more_than_asked_for(events: KeyEvents) -> None:
    made = [
        await add(events, at=later(minutes=n), status="RESOLVED" if n == 8 else "PENDING") for n in range(9)
    ]
    await close(events, made[0], later(hours=1))
    await close(events, made[1], later(hours=1))
    await events.update(U_IN_S1, made[2].id, EventChange(status="IN_PROGRESS"), by(U_IN_S1, later(hours=2)))
    found = await events.open(U_IN_S2, 100)
    order = [2, 7, 6, 5, 4, 3, 8]
    assert [event.id for event in found] == [made[n].id for n in order]
    assert found == sorted(found, key=rank)
    assert [event.id for event in await events.open(U_IN_S2, 5)] == [made[n].id for n in order[:5]]
    unresolved = await events.open(U_IN_S2, 100, resolved=False)
    assert [event.id for event in unresolved] == [made[n].id for n in order[:-1]]


async def test_a_18_of_the_same_instant_the_smaller_id_comes_first(events: KeyEvents) -> None:
    made = [await add(events) for _ in range(6)]
    in_order = sorted(event.id for event in made)
    assert [event.id for event in await events.open(U_IN_S1, 6)] == in_order
    page = await events.query(U_IN_S1, EventFilter(), DAY_0, limit=6)
    assert [event.id for event in page.events] == in_order


async def test_la_23_all_are_reachable_by_pages_and_closed_ones_if_asked_for(events: KeyEvents) -> None:
    made = [await add(events, at=later(minutes=n), type="Queja" if n % 2 else "Reembolso") for n in range(9)]
    for closed in made[:2]:
        await close(events, closed, later(hours=1))
    pages = [await events.query(U_IN_S1, EventFilter(), DAY_0, limit=3, offset=n) for n in (0, 3, 6)]
    assert [len(page.events) for page in pages] == [3, 3, 1] and {page.total for page in pages} == {7}
    assert {event.id for page in pages for event in page.events} == {event.id for event in made[2:]}

    async def total(**which: Any) -> int:
        return (await events.query(U_IN_S1, EventFilter(**which), DAY_0)).total

    assert await total(closed=True) == 9
    assert await total(status="CLOSED") == 2
    assert await total(type="Queja") == 3
    assert await total(type="queja") == 0
    assert await total(type="Queja", closed=True) == 4
    everything = await events.query(U_IN_S1, EventFilter(closed=True), DAY_0)
    assert [event.status for event in everything.events][-2:] == ["CLOSED", "CLOSED"]


async def test_c_9_im_17_open_ones_stay_and_closed_ones_can_be_read_for_90_days(events: KeyEvents) -> None:
    kept, closed = await add(events), await add(events)
    await close(events, closed, DAY_0)
    assert [event.id for event in await events.open(U_IN_S2, 5)] == [kept.id]
    last = later(days=90) - timedelta(seconds=1)
    assert await events.get(U_IN_S1, closed.id, last)
    for gone in (later(days=90), later(days=91)):
        assert await events.get(U_IN_S1, closed.id, gone) is None
        assert (await events.query(U_IN_S1, EventFilter(closed=True), gone)).total == 1
        assert (
            await events.update(U_IN_S1, closed.id, EventChange(status="PENDING"), by(U_IN_S1, gone)) is None
        )
    (still,) = (await events.query(U_IN_S1, EventFilter(), later(days=200))).events
    assert (still.id, still.status, still.updated_at) == (kept.id, "PENDING", DAY_0)


async def test_c_9_an_event_that_is_opened_again_stays_and_the_days_are_a_setting(
    events_of: MakeEvents,
) -> None:
    events = events_of(closed_days=3)
    made = await add(events)
    await close(events, made, DAY_0)
    assert await events.get(U_IN_S1, made.id, later(days=3)) is None
    again = await events.update(U_IN_S1, made.id, EventChange(status="PENDING"), by(U_IN_S1, later(days=2)))
    assert again and again.closed_at is None
    assert await events.get(U_IN_S1, made.id, later(days=400))


async def test_la_32_la_33_c_29_without_a_user_the_session_owns_the_event(events: KeyEvents) -> None:
    made = await add(events, NOBODY_IN_S1)
    assert (made.user, made.session, made.identity_resolved) == (None, "S1", False)
    assert [event.id for event in await events.open(NOBODY_IN_S1, 5)] == [made.id]
    assert await events.open(NOBODY_IN_S2, 5) == []
    assert await events.get(NOBODY_IN_S2, made.id, DAY_0) is None
    assert await events.open(U_IN_S1, 5) == []


async def test_a_22_the_events_of_a_session_become_its_users_and_the_history_says_so(
    events_of: MakeEvents,
) -> None:
    events = events_of()
    made, elsewhere = await add(events, NOBODY_IN_S1), await add(events, NOBODY_IN_S2)
    of_other_assistant = await add(events_of("A2"), NOBODY_IN_S1)
    assert await events.adopt("S1", "U", by(U_IN_S1, later(hours=1))) == [made.id]
    assert await events.adopt("S1", "V", by(V)) == []
    after = await events.get(U_IN_S2, made.id, later(hours=2))
    assert after and after.identity_resolved and after.updated_at == DAY_0
    revision = (after.history or ())[-1]
    assert (revision.number, revision.action, revision.actor, revision.session) == (2, "adopted", "U", "S1")
    assert revision.fields == {"user": (None, "U")}
    assert await events.open(NOBODY_IN_S1, 5) == []
    assert [event.id for event in await events.open(NOBODY_IN_S2, 5)] == [elsewhere.id]
    assert [event.id for event in await events_of("A2").open(NOBODY_IN_S1, 5)] == [of_other_assistant.id]


async def test_la_25_a_replay_makes_no_second_event_and_no_second_change(events_of: MakeEvents) -> None:
    made = [await events_of().create(U_IN_S1, REFUND, by(U_IN_S1, key="turn-1")) for _ in range(2)]
    assert made[0] == made[1]
    first, second = (by(U_IN_S1, later(minutes=n), key=f"turn-{n}") for n in (2, 3))
    for _ in range(2):
        await events_of().update(U_IN_S1, made[0].id, EventChange(status="IN_PROGRESS"), first)
        await events_of().update(U_IN_S1, made[0].id, EventChange(status="RESOLVED"), second)
    after = await events_of().get(U_IN_S1, made[0].id, later(hours=1))
    assert after and after.status == "RESOLVED"
    assert [revision.number for revision in after.history or ()] == [1, 2, 3]
    other = await events_of().create(V, REFUND, by(V, key="turn-1"))
    assert other.id != made[0].id
    assert (await events_of().query(U_IN_S1, EventFilter(), DAY_0)).total == 1


async def test_im_2_a_change_that_changes_nothing_leaves_no_entry(events: KeyEvents) -> None:
    made = await add(events)
    change = EventChange(status="PENDING", summary=REFUND.summary, entities=())
    assert await events.update(U_IN_S1, made.id, change, by(U_IN_S1, later(hours=1))) == made


async def test_c_16_no_sensitive_data_is_kept_in_an_event_or_its_history(events: KeyEvents) -> None:
    card = "4111 1111 1111 1111"
    made = await add(
        events, summary=f"Cobro doble en la tarjeta {card}", entities=(f"tarjeta {card}", "pedido 4471")
    )
    change = EventChange(summary=f"La tarjeta {card} ya está bien", entities=(card,))
    after = await events.update(U_IN_S1, made.id, change, by(U_IN_S1))
    assert "pedido 4471" in made.entities and "Cobro doble" in made.summary
    assert after and "4111" not in repr((made, after))


async def test_texts_that_postgresql_cannot_hold_are_kept_without_what_it_refuses(events: KeyEvents) -> None:
    made = await add(events, summary="a\0b\ud800c", entities=("x\0",))
    assert (made.summary, made.entities) == ("a�b�c", ("x�",))


@pytest.mark.parametrize("owner", [Owner(None, None), Owner("", "S1"), Owner(None, ""), Owner("U", "a\0b")])
async def test_c_11_without_an_owner_nothing_is_read_or_written(events: KeyEvents, owner: Owner) -> None:
    origin = Origin(DAY_0, "x")
    for work in (
        events.create(owner, REFUND, origin),
        events.update(owner, uuid4(), EventChange(status="CLOSED"), origin),
        events.get(owner, uuid4(), DAY_0),
        events.query(owner, EventFilter(), DAY_0),
        events.open(owner, 5),
    ):
        with pytest.raises(ScopeError):
            await work


async def test_a_time_without_a_zone_is_refused(events: KeyEvents) -> None:
    naive = datetime(2025, 12, 5)
    for work in (
        events.create(U_IN_S1, REFUND, by(U_IN_S1, naive)),
        events.get(U_IN_S1, uuid4(), naive),
        events.query(U_IN_S1, EventFilter(), naive),
    ):
        with pytest.raises(InputError, match="time zone"):
            await work


@pytest.mark.parametrize(
    "fields",
    [
        {"summary": ""},
        {"summary": " \n"},
        {"summary": "x" * 1001},
        {"entities": ("",)},
        {"entities": ("x" * 101,)},
        {"entities": ("x",) * 21},
    ],
)
def test_im_1_texts_that_are_empty_or_too_long_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        replace(REFUND, **fields)
    with pytest.raises(InputError):
        EventChange(**fields)


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan")])
def test_im_1_a_confidence_is_between_0_and_1(confidence: float) -> None:
    with pytest.raises(InputError, match="confidence"):
        replace(REFUND, confidence=confidence)


async def test_la_22_the_few_of_10000_are_read_from_an_index(database: Database) -> None:
    async with database.tenant("t1") as connection:
        await connection.execute(
            "insert into recuerdo.key_events (tenant, id, assistant, user_id, session, type, summary, entities,"
            " status, priority, confidence, created_at, updated_at, version)"
            " select 't1', gen_random_uuid(), 'A1', 'U', 'S1', 'Reembolso', 'pedido ' || n, '[]',"
            " (array['PENDING', 'RESOLVED'])[1 + n %% 2], 'MEDIUM', 1, %(now)s,"
            " %(now)s - n * interval '1 second', 1 from generate_series(1, 10000) as n",
            {"now": DAY_0},
        )
    async with database.connection() as connection:
        await connection.execute("analyze recuerdo.key_events")
    for shared in (False, True):
        found = await PostgresKeyEvents(database, "t1", "A1", shared=shared).open(U_IN_S2, 5)
        assert [event.summary for event in found] == [f"pedido {n}" for n in (2, 4, 6, 8, 10)]
    async with database.tenant("t1") as connection:
        cursor = await connection.execute(
            "explain select id from recuerdo.key_events where tenant = 't1' and assistant = 'A1'"
            " and user_id = 'U' and status <> 'CLOSED'"
            " order by (status = 'RESOLVED'), updated_at desc, id limit 5"
        )
        plan = "\n".join(str(row["QUERY PLAN"]) for row in await cursor.fetchall())
    assert "Index Scan using key_events_open" in plan and "Sort" not in plan


async def test_im_16_operators_filter_and_each_view_is_audited(database: Database) -> None:
    events = PostgresKeyEvents(database, "t1", "A1")
    refund, complaint = await add(events), await add(events, V, later(days=1), type="Queja")
    anonymous = await add(events, NOBODY_IN_S1, later(days=2))
    await close(events, refund, later(days=2))
    operators = OperatorEvents(database, "t1")

    async def found(**which: Any) -> set[Any]:
        page = await operators.list(OperatorFilter(**which), "ana", later(days=400), limit=10)
        assert page.total == len(page.events)
        return {event.id for event in page.events}

    assert await found(type="Reembolso") == {refund.id, anonymous.id}
    assert await found(user="V") == {complaint.id}
    assert await found(status="CLOSED") == {refund.id}
    assert await found(since=later(days=1), until=later(days=2)) == {complaint.id}
    assert await found(unresolved=True) == {anonymous.id}
    assert await found(assistant="A2") == set()
    assert await operators.get(refund.id, "eva", later(days=401))
    views = await operators.views()
    assert len(views) == 7
    assert (views[0].actor, views[0].action, views[0].ids) == ("eva", "shown", [refund.id])
    by_type = views[-1]
    assert (by_type.actor, by_type.action, by_type.at) == ("ana", "listed", later(days=400))
    assert (by_type.filter, set(by_type.ids)) == ({"type": "Reembolso"}, {refund.id, anonymous.id})
    assert "4471" not in repr(views)


async def test_im_16_an_operator_of_another_tenant_sees_nothing_and_none_looks_without_a_name(
    database: Database,
) -> None:
    made = await add(PostgresKeyEvents(database, "t1", "A1"))
    other = OperatorEvents(database, "t2")
    assert await other.get(made.id, "ana", DAY_0) is None
    assert (await other.list(OperatorFilter(), "ana", DAY_0, limit=10)).total == 0
    assert await other.types("ana", DAY_0) == []
    operators = OperatorEvents(database, "t1")
    with pytest.raises(ScopeError):
        await operators.list(OperatorFilter(), "", DAY_0, limit=10)
    assert await operators.views() == []


async def test_forgetting_a_user_takes_his_events_with_their_history_and_nobody_elses(
    database: Database,
) -> None:
    events = PostgresKeyEvents(database, "t1", "A1")
    gone, kept = await add(events), await add(events, V)
    await events.update(U_IN_S1, gone.id, EventChange(summary="Devuelto"), by(U_IN_S1))
    await forget_user(database, "t1", "U", later(days=1))
    assert await events.get(U_IN_S1, gone.id, later(days=1)) is None
    assert await events.get(V, kept.id, later(days=1)) == kept
    async with database.tenant("t1") as connection:
        cursor = await connection.execute("select distinct event_id from recuerdo.key_event_changes")
        assert [row["event_id"] for row in await cursor.fetchall()] == [kept.id]
