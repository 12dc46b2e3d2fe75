"""Roles of a tenant: who may make memories permanent (OR-11)."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.audit import read_audit
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.roles import AUTO_APPROVE, SYSTEM, Roles

NOW = datetime(2025, 12, 5, tzinfo=UTC)


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
async def roles(database: Database, keys: KeyFolder) -> Roles:
    roles = Roles(database, "t1", keys)
    await roles.appoint_first_owner("olga", NOW)
    return roles


async def test_or_11_everybody_is_a_user_until_an_owner_grants_more(database: Database, roles: Roles) -> None:
    assert await roles.role_of("ana") == "user"
    await roles.grant("ana", "supervisor", actor="olga", at=NOW)
    assert await roles.role_of("ana") == "supervisor"
    await roles.grant("bot", "agent", actor="olga", at=NOW)
    assert await roles.all() == {"ana": "supervisor", "bot": "agent", "olga": "owner"}
    await roles.revoke("ana", actor="olga", at=NOW)
    assert await roles.role_of("ana") == "user"
    entries = await read_audit(database, "t1", "roles", "ana")
    assert [(e.actor, e.action, e.previous_status, e.new_status) for e in entries] == [
        ("olga", "granted", "user", "supervisor"),
        ("olga", "revoked", "supervisor", "user"),
    ]


@pytest.mark.parametrize("role", ["supervisor", "agent", "user"])
async def test_or_11_only_an_owner_grants(roles: Roles, role: str) -> None:
    await roles.grant("ana", role, actor="olga", at=NOW)  # type: ignore[arg-type]
    for change in (
        roles.grant("ana", "owner", actor="ana", at=NOW),
        roles.revoke("olga", actor="ana", at=NOW),
    ):
        with pytest.raises(ScopeError, match="owner"):
            await change
    assert await roles.role_of("olga") == "owner"


async def test_or_6_roles_are_those_of_one_tenant(database: Database, roles: Roles, keys: KeyFolder) -> None:
    assert await Roles(database, "t2", keys).role_of("olga") == "user"
    assert await Roles(database, "t2", keys).all() == {}


async def test_the_first_owner_is_appointed_once_whoever_comes_at_the_same_time(
    database: Database, keys: KeyFolder
) -> None:
    roles = Roles(database, "t2", keys)
    tries = await asyncio.gather(
        *(roles.appoint_first_owner(name, NOW) for name in ("a", "b", "c")), return_exceptions=True
    )
    assert [type(result) for result in tries].count(ScopeError) == 2
    assert list((await roles.all()).values()) == ["owner"]


async def test_the_last_owner_cannot_go(roles: Roles) -> None:
    with pytest.raises(ScopeError, match="only owner"):
        await roles.revoke("olga", actor="olga", at=NOW)
    await roles.grant("otto", "owner", actor="olga", at=NOW)
    await roles.revoke("olga", actor="otto", at=NOW)
    assert await roles.all() == {"otto": "owner"}


async def test_bad_input_is_refused(roles: Roles) -> None:
    with pytest.raises(InputError, match="no role"):
        await roles.grant("ana", "king", actor="olga", at=NOW)  # type: ignore[arg-type]
    for user, actor in (("", "olga"), ("ana", "")):
        with pytest.raises(ScopeError):
            await roles.grant(user, "agent", actor=actor, at=NOW)
    with pytest.raises(InputError, match="time zone"):
        await roles.grant("ana", "agent", actor="olga", at=datetime(2025, 12, 5))


@pytest.mark.parametrize(
    "name",
    [SYSTEM, AUTO_APPROVE, "Recuerdo", " sofia", "sofia ", "so\u200bfia", "so\u202efia", "sofi\u0301a"],
)
async def test_or_11_nobody_decides_under_a_name_that_passes_for_another(roles: Roles, name: str) -> None:
    with pytest.raises(InputError):
        await roles.grant(name, "supervisor", actor="olga", at=NOW)
    assert await roles.all() == {"olga": "owner"}


@pytest.mark.parametrize("name", ["sofía", "user-123", "Ana María", "s@x.org", "李"])
async def test_or_11_names_as_people_have_them_are_taken(roles: Roles, name: str) -> None:
    await roles.grant(name, "supervisor", actor="olga", at=NOW)
    assert await roles.role_of(name) == "supervisor"
