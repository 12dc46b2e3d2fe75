"""Packs in PostgreSQL: every version stays, nobody changes one, no tenant sees another's."""

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from recuerdo.state.errors import ScopeError, SettingsError
from recuerdo.stores.keys import KeyFolder, SigningKey
from recuerdo.stores.packs import Pack, PackFile, Packs, PackShelf, seal
from recuerdo.stores.postgres.database import Database
from tests.stores.packs.conftest import NOW


def rules(hour: str, name: str = "tarifas") -> Pack:
    return Pack.of(name, [PackFile("salidas.md", f"Check-out: {hour}.\n")])


OLD, NEW = rules("11:00"), rules("12:00")


@pytest.fixture
def packs(database: Database) -> Packs:
    return Packs(database, "t1")


@pytest.fixture
def shelf(database: Database, keys: KeyFolder) -> PackShelf:
    return PackShelf(database, keys)


def tamper(url: str, statement: str) -> None:
    """As the owner of the database could, past the triggers."""
    with psycopg.connect(url) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute(statement)


async def test_or_16_a_new_version_never_replaces_the_old_one(
    packs: Packs, shelf: PackShelf, key: SigningKey
) -> None:
    await packs.add(seal(OLD, key), "olga", NOW)
    before = await shelf.load("t1", [OLD.reference])
    await packs.add(seal(NEW, key), "olga", NOW)
    assert {entry.reference for entry in await packs.all()} == {OLD.reference, NEW.reference}
    assert await shelf.load("t1", [OLD.reference]) == before == (OLD,)
    assert await shelf.load("t1", [NEW.reference, OLD.reference]) == (NEW, OLD)


async def test_or_16_the_same_content_twice_is_one_pack(packs: Packs, key: SigningKey) -> None:
    assert await packs.add(seal(OLD, key), "olga", NOW) is True
    assert await packs.add(seal(OLD, key), "rosa", NOW) is False
    (entry,) = await packs.all()
    assert entry.built_by == "olga"
    assert len((await packs.read([OLD.reference]))[OLD.reference].signatures) == 1


@pytest.mark.parametrize("table", ["packs", "pack_signatures"])
@pytest.mark.parametrize(
    "change", ["update recuerdo.{} set name = 'x'", "delete from recuerdo.{}", "truncate recuerdo.{} cascade"]
)
async def test_or_16_rows_are_immutable(
    packs: Packs, key: SigningKey, database_url: str, table: str, change: str
) -> None:
    await packs.add(seal(OLD, key), "olga", NOW)
    with (
        psycopg.connect(database_url) as owner,
        pytest.raises(psycopg.errors.RaiseException, match="immutable"),
    ):
        owner.execute(change.format(table))


async def test_or_14_a_stored_pack_altered_by_hand_is_refused(
    packs: Packs, shelf: PackShelf, key: SigningKey, database_url: str
) -> None:
    await packs.add(seal(OLD, key), "olga", NOW)
    tamper(
        database_url,
        "update recuerdo.packs set manifest = replace(encode(manifest, 'escape'), '11', '12')::bytea",
    )
    with pytest.raises(SettingsError, match=rf"{OLD.reference}.*hash mismatch"):
        await shelf.load("t1", [OLD.reference])


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("delete from recuerdo.pack_signatures", "not signed"),
        ("update recuerdo.pack_signatures set signature = signature || '\\x00'", "signature is wrong"),
        ("update recuerdo.pack_signatures set key_id = 'other'", "not trusted"),
    ],
)
async def test_or_15_a_missing_or_wrong_signature_is_refused(
    packs: Packs, shelf: PackShelf, key: SigningKey, database_url: str, statement: str, reason: str
) -> None:
    await packs.add(seal(OLD, key), "olga", NOW)
    tamper(database_url, statement)
    with pytest.raises(SettingsError, match=rf"{OLD.reference}.*{reason}"):
        await shelf.load("t1", [OLD.reference])


async def test_or_15_sealed_again_with_another_key_it_is_believed(
    packs: Packs, shelf: PackShelf, key: SigningKey
) -> None:
    lost = SigningKey(Ed25519PrivateKey.generate())
    await packs.add(seal(OLD, lost), "olga", NOW)
    with pytest.raises(SettingsError, match="not trusted"):
        await shelf.load("t1", [OLD.reference])
    assert await packs.add(seal(OLD, key), "olga", NOW) is False
    assert await shelf.load("t1", [OLD.reference]) == (OLD,)


async def test_a_28_packs_signed_before_a_rotation_stay_good(
    packs: Packs, shelf: PackShelf, key: SigningKey, keys: KeyFolder
) -> None:
    await packs.add(seal(OLD, key), "olga", NOW)
    keys.rotate("olga", NOW)
    await packs.add(seal(NEW, keys.signing_key("olga", NOW)), "olga", NOW)
    assert await shelf.load("t1", [OLD.reference, NEW.reference]) == (OLD, NEW)


async def test_or_15_a_missing_pin_is_named(packs: Packs, shelf: PackShelf, key: SigningKey) -> None:
    await packs.add(seal(OLD, key), "olga", NOW)
    with pytest.raises(SettingsError, match=NEW.reference):
        await shelf.load("t1", [OLD.reference, NEW.reference])
    other_name = rules("11:00", "horarios").reference
    with pytest.raises(SettingsError, match=other_name):
        await shelf.load("t1", [other_name])


async def test_or_13_a_tenant_has_its_own_packs(
    database: Database, packs: Packs, shelf: PackShelf, key: SigningKey
) -> None:
    await packs.add(seal(OLD, key), "olga", NOW)
    await shelf.load("t1", [OLD.reference])
    with pytest.raises(SettingsError, match="tenant t2 has no pack"):
        await shelf.load("t2", [OLD.reference])
    assert await Packs(database, "t2").all() == []
    async with database.tenant("t2") as connection:
        for table in ("packs", "pack_signatures"):
            assert await (await connection.execute(f"select 1 from recuerdo.{table}")).fetchall() == []


async def test_a_27_a_pack_is_verified_once_for_a_process(
    packs: Packs, shelf: PackShelf, key: SigningKey, database_url: str
) -> None:
    await packs.add(seal(OLD, key), "olga", NOW)
    first = await shelf.load("t1", [OLD.reference])
    tamper(database_url, "delete from recuerdo.pack_signatures")
    assert (await shelf.load("t1", [OLD.reference]))[0] is first[0]


async def test_or_16_nobody_builds_without_a_name(packs: Packs, key: SigningKey) -> None:
    with pytest.raises(ScopeError, match="actor"):
        await packs.add(seal(OLD, key), "", NOW)
