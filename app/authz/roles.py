"""Roles and who is in them.

Being put into a role gives everything that the role's rules reach, on whatever collection. So only who made a role
and manages all that it reaches, or who manages the whole system, may change its members.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import text

from app.authz.compile import Authority
from app.db.session import Transaction
from app.domain.access import SLUG, Action
from app.domain.principal import Principal, is_principal_key
from app.errors import Conflict, Denied, InvalidRequest, NotFound

_INSERT = text("INSERT INTO roles (name, created_by) VALUES (:name, :by) ON CONFLICT DO NOTHING")
_ROLE = text("SELECT name, builtin, created_by FROM roles WHERE name = :name")
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('role ' || :name, 0))")
_PAGE = text("SELECT name, builtin, created_by FROM roles WHERE name > :after ORDER BY name LIMIT :limit")
_MEMBERS = text("""
    SELECT member_kind, member FROM memberships
    WHERE container_kind = 'role' AND container = :role AND revoked_at IS NULL ORDER BY 1, 2
""")
# What a member of the role gets: the rules of the role and of every role that it belongs to in turn.
_ABOVE = """
    WITH RECURSIVE above AS (
        SELECT CAST(:role AS text) AS name
        UNION
        SELECT m.container FROM above a JOIN memberships m ON m.member_kind = 'role' AND m.member = a.name
        WHERE m.container_kind = 'role' AND m.revoked_at IS NULL
    )
"""
_REACH = text(
    _ABOVE
    + """
    SELECT DISTINCT g.collection_id FROM above a
    JOIN grants g ON g.subject_kind = 'role' AND g.subject = a.name AND g.revoked_at IS NULL
"""
)
_IS_ABOVE = text(_ABOVE + "SELECT FROM above WHERE name = :member")
_ADD = text("""
    INSERT INTO memberships (member_kind, member, container_kind, container, granted_by)
    VALUES (:kind, :member, 'role', :role, :by) ON CONFLICT DO NOTHING
""")
_REMOVE = text("""
    UPDATE memberships SET revoked_at = now(), revoked_by = :by
    WHERE container_kind = 'role' AND container = :role AND revoked_at IS NULL
      AND member_kind = :kind AND member = :member
""")


@dataclass(frozen=True, slots=True)
class RoleCard:
    """A role as it is shown, without its members."""

    name: str
    builtin: bool
    created_by: str


@dataclass(frozen=True, slots=True)
class Members:
    """Who is in a role: principals and groups by key, roles by name."""

    principals: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()

    def pairs(self) -> set[tuple[str, str]]:
        """(kind, name) of every member."""
        kinds = (("principal", self.principals), ("group", self.groups), ("role", self.roles))
        return {(kind, name) for kind, names in kinds for name in names}

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "Members":
        """The reverse of `pairs`."""
        by_kind: dict[str, set[str]] = {"principal": set(), "group": set(), "role": set()}
        for kind, name in pairs:
            by_kind[kind].add(name)
        return cls(frozenset(by_kind["principal"]), frozenset(by_kind["group"]), frozenset(by_kind["role"]))


async def create(transaction: Transaction, authority: Authority, by: Principal, name: str) -> RoleCard:
    """Make an empty role. Raises `InvalidRequest`, `Conflict`, `Denied` for who manages nothing."""
    if SLUG.fullmatch(name) is None:
        raise InvalidRequest("name", "not a role name", allowed="1..63 of a-z, 0-9 and -, not starting with -")
    await _require_custodian(transaction, authority, by)
    if (await transaction.connection.execute(_INSERT, {"name": name, "by": by.key})).rowcount != 1:
        raise Conflict("A role of this name exists.")
    return RoleCard(name, builtin=False, created_by=by.key)


async def _require_custodian(transaction: Transaction, authority: Authority, by: Principal) -> None:
    manages = await authority.compile(transaction, by, Action.MANAGE)
    creates = await authority.compile(transaction, by, Action.CREATE)
    if not (manages.collections or manages.system or creates.system):
        raise Denied


async def listed(
    transaction: Transaction, authority: Authority, by: Principal, *, after: str, limit: int
) -> list[RoleCard]:
    """Every role by name, for who may make rules; raises `Denied` to others."""
    await _require_custodian(transaction, authority, by)
    rows = await transaction.connection.execute(_PAGE, {"after": after, "limit": limit})
    return [RoleCard(*row) for row in rows]


async def members(transaction: Transaction, authority: Authority, by: Principal, name: str) -> Members:
    """Who is in a role. Raises `NotFound` unless `by` may change it."""
    await _require_sway(transaction, authority, by, name)
    rows = await transaction.connection.execute(_MEMBERS, {"role": name})
    return Members.of((kind, member) for kind, member in rows)


async def set_members(
    transaction: Transaction, authority: Authority, by: Principal, name: str, wanted: Members
) -> Members:
    """Make `wanted` the members of a role: who is missing is added, who is not named is revoked.

    Raises `InvalidRequest`, `Conflict` for roles that would contain themselves, `NotFound`, `Denied`.
    """
    _check_names(wanted)
    await transaction.connection.execute(_LOCK, {"name": name})
    await _require_sway(transaction, authority, by, name)
    present = {(kind, member) for kind, member in await transaction.connection.execute(_MEMBERS, {"role": name})}
    for role in wanted.roles:
        await _check_nesting(transaction, name, role)
    for statement, pairs in ((_REMOVE, present - wanted.pairs()), (_ADD, wanted.pairs() - present)):
        for kind, member in sorted(pairs):
            values = {"kind": kind, "member": member, "role": name, "by": by.key}
            await transaction.connection.execute(statement, values)
    return wanted


async def add_members(
    transaction: Transaction, authority: Authority, by: Principal, name: str, joining: Members
) -> Members:
    """Put `joining` into a role beside those who are in it; all its members then. Raises as `set_members`."""
    await transaction.connection.execute(_LOCK, {"name": name})
    present = await members(transaction, authority, by, name)
    return await set_members(transaction, authority, by, name, Members.of(present.pairs() | joining.pairs()))


async def remove_members(
    transaction: Transaction, authority: Authority, by: Principal, name: str, leaving: Members
) -> Members:
    """Take `leaving` out of a role; all its members then.

    Raises as `set_members`, and `NotFound` when one of them is not in it: a name misspelt must not look like done.
    """
    await transaction.connection.execute(_LOCK, {"name": name})
    present = await members(transaction, authority, by, name)
    strangers = sorted(member for _, member in leaving.pairs() - present.pairs())
    if strangers:
        raise NotFound(f"Not in this role: {', '.join(strangers)}.")
    return await set_members(transaction, authority, by, name, Members.of(present.pairs() - leaving.pairs()))


def _check_names(wanted: Members) -> None:
    for field, names in (("principals", wanted.principals), ("groups", wanted.groups)):
        for name in names:
            if not is_principal_key(name):
                raise InvalidRequest(field, "not a principal or group", allowed="a local name, or issuer|name")


async def _check_nesting(transaction: Transaction, container: str, member: str) -> None:
    if (await transaction.connection.execute(_ROLE, {"name": member})).first() is None:
        raise InvalidRequest("roles", "no such role", allowed="roles that exist")
    if (await transaction.connection.execute(_IS_ABOVE, {"role": container, "member": member})).first() is not None:
        raise Conflict("A role cannot contain itself, directly or through others.")


async def _require_sway(transaction: Transaction, authority: Authority, by: Principal, name: str) -> None:
    """Raise `NotFound` to who manages nothing, `Denied` to who may not change this role's members."""
    await _require_custodian(transaction, authority, by)
    role = (await transaction.connection.execute(_ROLE, {"name": name})).one_or_none()
    if role is None:
        raise NotFound
    scope = await authority.compile(transaction, by, Action.MANAGE)
    if scope.system:
        return
    reach = set((await transaction.connection.execute(_REACH, {"role": name})).scalars())
    if role.created_by != by.key or not reach <= {part.id for part in scope.collections.values()}:
        raise Denied
