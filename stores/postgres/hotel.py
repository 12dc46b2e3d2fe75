"""The hotel of the demo: rooms with their prices, and reservations (C-39). Small, and real."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from psycopg.rows import class_row

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.scope import require_scope

_sentences = load_sentences(__package__, "hotel_sentences.yaml")

_RESERVATION = "id, room, guest, check_in, nights, price, currency, discount_pct"

_LONGEST_GUEST = 200
_MOST_NIGHTS = 60

# How many rooms of a type are taken in each night of a stay; the fullest night counts.
_TAKEN = """
select coalesce(max(taken), 0) as taken from (
    select count(r.id) as taken
    from generate_series(%(first)s::date, %(last)s::date, interval '1 day') as night
    join recuerdo.hotel_reservations r on r.tenant = %(tenant)s and r.room = %(room)s
        and night.night >= r.check_in and night.night < r.check_in + r.nights
    group by night.night
) as nights
"""


@dataclass(frozen=True)
class Room:
    """A type of room: its price for a night, and how many there are."""

    room: str
    price: Decimal
    currency: str
    number: int


@dataclass(frozen=True)
class Offer:
    """A type of room for a stay: ``free`` are left in its fullest night; ``total`` is without discount."""

    room: str
    price: Decimal
    currency: str
    free: int
    total: Decimal


@dataclass(frozen=True)
class Reservation:
    """A reservation; ``discount_pct`` from 0 to 100."""

    id: str
    room: str
    guest: str
    check_in: date
    nights: int
    price: Decimal
    currency: str
    discount_pct: Decimal

    @property
    def total(self) -> Decimal:
        """What the stay costs, discount taken off."""
        return (self.price * self.nights * (100 - self.discount_pct) / 100).quantize(Decimal("0.01"))


class Hotel:
    """The hotel of one tenant."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def load(self, rooms: Sequence[Room]) -> None:
        """Set the rooms; those of other types stay."""
        async with self._database.tenant(self._tenant) as connection:
            for room in rooms:
                await connection.execute(
                    "insert into recuerdo.hotel_rooms (tenant, room, price, currency, number)"
                    " values (%(tenant)s, %(room)s, %(price)s, %(currency)s, %(number)s)"
                    " on conflict (tenant, room) do update set price = excluded.price,"
                    " currency = excluded.currency, number = excluded.number",
                    {**vars(room), "tenant": self._tenant},
                )

    async def clear_reservations(self) -> None:
        """Forget every reservation."""
        async with self._database.tenant(self._tenant) as connection:
            await connection.execute(
                "delete from recuerdo.hotel_reservations where tenant = %s", (self._tenant,)
            )

    async def offers(self, check_in: date, nights: int) -> Sequence[Offer]:
        """Every type of room for a stay, cheapest first. Raises InputError for a stay that cannot be."""
        _check_stay(nights)
        async with self._database.tenant(self._tenant) as connection:
            rooms = await self._rooms(connection)
            taken = [await self._taken(connection, room.room, check_in, nights) for room in rooms]
        return [
            Offer(room.room, room.price, room.currency, max(room.number - full, 0), room.price * nights)
            for room, full in zip(rooms, taken, strict=True)
        ]

    async def reservation(self, reservation_id: str) -> Reservation:
        """One reservation. Raises InputError when there is none."""
        async with self._database.tenant(self._tenant) as connection:
            return await self._one(connection, reservation_id)

    async def reservations(self) -> Sequence[Reservation]:
        """Every reservation, by arrival."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(Reservation))
            await cursor.execute(
                f"select {_RESERVATION} from recuerdo.hotel_reservations where tenant = %s order by check_in, id",
                (self._tenant,),
            )
            return await cursor.fetchall()

    async def reserve(
        self,
        connection: Connection,
        key: UUID,
        room: str,
        guest: str,
        check_in: date,
        nights: int,
        at: datetime,
    ) -> Reservation:
        """Make a reservation in the transaction of ``connection``; ``key`` gives its id.

        Raises InputError when there is no such room, none is free, or the stay cannot be.
        """
        _check_stay(nights)
        if not guest.strip() or len(guest) > _LONGEST_GUEST:
            raise InputError(_sentences("guest_invalid", longest=_LONGEST_GUEST))
        # Its lock makes two who want the last room come one after the other.
        rooms = {one.room: one for one in await self._rooms(connection, lock=True)}
        wanted = rooms.get(room.strip().lower())
        if wanted is None:
            raise InputError(_sentences("room_unknown", room=room[:60], rooms=", ".join(rooms) or "-"))
        if await self._taken(connection, wanted.room, check_in, nights) >= wanted.number:
            raise InputError(_sentences("room_full", room=wanted.room))
        made = Reservation(
            f"R-{key.hex[:8].upper()}",
            wanted.room,
            guest.strip(),
            check_in,
            nights,
            wanted.price,
            wanted.currency,
            Decimal(0),
        )
        await connection.execute(
            "insert into recuerdo.hotel_reservations (tenant, id, room, guest, check_in, nights, price, currency,"
            " discount_pct, made_at) values (%(tenant)s, %(id)s, %(room)s, %(guest)s, %(check_in)s, %(nights)s,"
            " %(price)s, %(currency)s, %(discount_pct)s, %(at)s)",
            {**vars(made), "tenant": self._tenant, "at": at},
        )
        return made

    async def discount(
        self, connection: Connection, reservation_id: str, discount_pct: Decimal, nights: int
    ) -> Reservation:
        """Set the discount of a reservation in the transaction of ``connection``.

        Raises InputError when there is no such reservation, the discount is none, or the reservation is not of so
        many nights: a rule of the plan lets a call pass by what its arguments say, so they have to be true.
        """
        if not discount_pct.is_finite() or not 0 < discount_pct <= 100:
            raise InputError(_sentences("discount_invalid"))
        before = await self._one(connection, reservation_id, lock=True)
        if before.nights != nights:
            raise InputError(_sentences("nights_differ", id=before.id, nights=before.nights, said=nights))
        await connection.execute(
            "update recuerdo.hotel_reservations set discount_pct = %s where tenant = %s and id = %s",
            (discount_pct, self._tenant, before.id),
        )
        return await self._one(connection, before.id)

    async def _one(self, connection: Connection, reservation_id: str, *, lock: bool = False) -> Reservation:
        cursor = connection.cursor(row_factory=class_row(Reservation))
        locked = " for update" if lock else ""
        await cursor.execute(
            f"select {_RESERVATION} from recuerdo.hotel_reservations where tenant = %s and id = %s{locked}",
            (self._tenant, reservation_id.strip().upper()),
        )
        found = await cursor.fetchone()
        if found is None:
            raise InputError(_sentences("reservation_unknown", id=reservation_id[:60]))
        return found

    async def _rooms(self, connection: Connection, *, lock: bool = False) -> Sequence[Room]:
        cursor = connection.cursor(row_factory=class_row(Room))
        locked = " for update" if lock else ""
        await cursor.execute(
            "select room, price, currency, number from recuerdo.hotel_rooms"
            f" where tenant = %s order by price, room{locked}",
            (self._tenant,),
        )
        return await cursor.fetchall()

    async def _taken(self, connection: Connection, room: str, check_in: date, nights: int) -> int:
        cursor = await connection.execute(
            _TAKEN,
            {
                "tenant": self._tenant,
                "room": room,
                "first": check_in,
                "last": check_in + timedelta(days=nights - 1),
            },
        )
        row = await cursor.fetchone()
        return int(row["taken"]) if row else 0


def _check_stay(nights: int) -> None:
    if not 1 <= nights <= _MOST_NIGHTS:
        raise InputError(_sentences("nights_invalid", most=_MOST_NIGHTS))
