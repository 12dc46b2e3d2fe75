"""Who may do what in a tenant: owner, supervisor, agent or user (OR-11).

Everybody is a user until somebody grants more. The first owner is appointed; after that owners grant.
"""

import re
import unicodedata
from datetime import datetime
from typing import Final, Literal, get_args

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.arguments import shown
from recuerdo.stores.postgres.audit import Action, Change, write_audit
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.governance_audit import AuditAct, GovernanceAudit
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.scope import require_scope

_sentences = load_sentences(__package__, "memory_sentences.yaml")
_governance_sentences = load_sentences(__package__, "governance_sentences.yaml")

Role = Literal["owner", "supervisor", "agent", "user"]

SYSTEM: Final = "recuerdo"
"""Who compiles and activates at the first use of a plan that ships."""

AUTO_APPROVE: Final = "auto-approve"
"""Who lets a call pass where a rule of the plan does."""

SYSTEM_NAMES: Final = frozenset({SYSTEM, AUTO_APPROVE})
"""Who stands in the audit where no person decided."""

_HIDDEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp"})

# What shows nothing though its category does not say so: the rest of Unicode's Default_Ignorable_Code_Point (joiners,
# fillers, variation selectors, places kept for more of them), the blank of Braille, the filler of Khitan, the note
# without a head.
_SHOWS_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U00016fe4\U0001d159\U000e0000-\U000e0fff]"
)

SUPERVISING: Final[tuple[Role, ...]] = ("supervisor", "owner")
"""Who decides, and may read evidence, requests, proposals and the audit."""

STAFF: Final[tuple[Role, ...]] = ("agent", *SUPERVISING)
"""Who may look at plans, packs and roles: everybody with a granted role."""


class Roles:
    """The roles of one tenant; every change stands in the chain of the governance audit.

    Raises ScopeError when the tenant, the user or the actor is missing.
    """

    def __init__(self, database: Database, tenant: str, keys: KeyFolder) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant
        self._audit = GovernanceAudit(database, tenant, keys)

    async def role_of(self, user: str) -> Role:
        """The user's role; "user" where none was granted."""
        async with self._database.tenant(self._tenant) as connection:
            return await role_of(connection, self._tenant, user)

    async def all(self) -> dict[str, Role]:
        """Every role that was granted, by user."""
        async with self._database.tenant(self._tenant) as connection:
            return await roles_of(connection, self._tenant)

    async def require(self, actor: str, roles: tuple[Role, ...]) -> None:
        """Raise ScopeError when the actor has none of ``roles``."""
        async with self._database.tenant(self._tenant) as connection:
            await require_role(connection, self._tenant, actor, roles)

    async def appoint_first_owner(self, user: str, at: datetime) -> None:
        """Make ``user`` the owner of a tenant that has none: for whoever runs the deployment.

        Raises ScopeError when there is an owner, InputError as :func:`require_person` does.
        """
        require_person(user)
        require_aware(at)
        async with self._database.tenant(self._tenant) as connection:
            if await self._owners(connection):
                raise ScopeError(_sentences("owner_exists"))
            await self._write(connection, user, "owner", user, at)

    async def grant(self, user: str, role: Role, *, actor: str, at: datetime) -> bool:
        """Give ``user`` a role, in place of the one before. Audited. False: it is his already, and nothing is written.

        Raises ScopeError when the actor is no owner, or the tenant would be left without one; InputError for
        a role that does not exist, and as :func:`require_person` does.
        """
        if role not in get_args(Role):
            raise InputError(_sentences("role_unknown", role=shown(role), roles=", ".join(get_args(Role))))
        if role != "user":
            require_person(user)
        require_scope(user=user)
        require_aware(at)
        async with self._database.tenant(self._tenant) as connection:
            owners = await self._owners(connection)
            await require_role(connection, self._tenant, actor, ("owner",))
            if role != "owner" and owners == [user]:
                raise ScopeError(_sentences("owner_last"))
            if await role_of(connection, self._tenant, user) == role:
                return False
            await self._write(connection, user, role, actor, at)
        return True

    async def revoke(self, user: str, *, actor: str, at: datetime) -> bool:
        """Make ``user`` an ordinary user again, as :meth:`grant` does it."""
        return await self.grant(user, "user", actor=actor, at=at)

    async def _owners(self, connection: Connection) -> list[str]:
        # Changes of roles come one after the other: two could else both be the first owner, or the last to go.
        await connection.execute(
            "select pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"roles\x1f{self._tenant}",)
        )
        cursor = await connection.execute(
            "select user_id from recuerdo.roles where tenant = %s and role = 'owner'", (self._tenant,)
        )
        return [row["user_id"] for row in await cursor.fetchall()]

    async def _write(self, connection: Connection, user: str, role: Role, actor: str, at: datetime) -> None:
        before = await role_of(connection, self._tenant, user)
        if role == "user":
            await connection.execute(
                "delete from recuerdo.roles where tenant = %s and user_id = %s", (self._tenant, user)
            )
        else:
            await connection.execute(
                "insert into recuerdo.roles (tenant, user_id, role, granted_by, granted_at)"
                " values (%s, %s, %s, %s, %s) on conflict (tenant, user_id) do update set"
                " role = excluded.role, granted_by = excluded.granted_by, granted_at = excluded.granted_at",
                (self._tenant, user, role, actor, at),
            )
        action: Action = "revoked" if role == "user" else "granted"
        change = Change("roles", user, action, previous_status=before, new_status=role)
        await write_audit(connection, self._tenant, actor, at, [change])
        act = AuditAct(at, actor, f"role.{action}", user, before=before, after=role)
        await self._audit.append(connection, act)


async def roles_of(connection: Connection, tenant: str) -> dict[str, Role]:
    """Every role that was granted, by user, in the transaction of ``connection``."""
    cursor = await connection.execute(
        "select user_id, role from recuerdo.roles where tenant = %s order by user_id", (tenant,)
    )
    return {row["user_id"]: row["role"] for row in await cursor.fetchall()}


def require_person(name: str) -> None:
    """Raise InputError for a name that nobody may decide under: one that the audit uses itself, or one that looks
    like another, with blanks around it, characters that do not show, or another form of the same letters."""
    require_scope(user=name)
    if any(same_person(name, of_system) for of_system in SYSTEM_NAMES):
        raise InputError(_governance_sentences("name_of_system", name=name))
    if any(map(_is_hidden, name)) or name != name.strip() or name != unicodedata.normalize("NFC", name):
        raise InputError(_governance_sentences("name_confusable", name=name.strip()))


def same_person(a: str | None, b: str | None) -> bool:
    """Whether two names are one person's: the same letters, whatever their case, form, blanks and hidden characters.

    The user of a conversation is called what the app calls him, the actor what an owner granted: who asked must not
    pass for another by a capital or a blank (IM-49). None is nobody.
    """
    return a is not None and b is not None and _letters(a) == _letters(b)


def _letters(name: str) -> str:
    whole = unicodedata.normalize("NFKC", name)
    shown = "".join(one for one in whole if not (one.isspace() or _is_hidden(one)))
    return unicodedata.normalize("NFKC", shown.casefold())


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN or bool(_SHOWS_NOTHING.match(character))


async def role_of(connection: Connection, tenant: str, user: str) -> Role:
    """The user's role, in the transaction of ``connection``."""
    require_scope(user=user)
    cursor = await connection.execute(
        "select role from recuerdo.roles where tenant = %s and user_id = %s", (tenant, user)
    )
    row = await cursor.fetchone()
    role: Role = row["role"] if row else "user"
    return role


async def require_role(connection: Connection, tenant: str, actor: str, roles: tuple[Role, ...]) -> None:
    """Raise ScopeError when the actor has none of ``roles``; where nobody is owner yet it says how one is made."""
    require_scope(actor=actor)
    if await role_of(connection, tenant, actor) in roles:
        return
    key = "role_needed" if await _has_owner(connection, tenant) else "role_needed_no_owner"
    raise ScopeError(_sentences(key, actor=actor, roles=" / ".join(roles)))


async def _has_owner(connection: Connection, tenant: str) -> bool:
    cursor = await connection.execute(
        "select from recuerdo.roles where tenant = %s and role = 'owner' limit 1", (tenant,)
    )
    return await cursor.fetchone() is not None
