"""Roles and who is in them.

Being put into a role gives everything that the role's rules reach, on whatever collection. So only who made a role
and manages all that it reaches, or who manages the whole system, may change its members.
"""

from dataclasses import dataclass

from sqlalchemy import text

from app.authz import membership
from app.authz.compile import Authority
from app.authz.membership import Members
from app.db.session import Transaction
from app.domain.access import SLUG, Action
from app.domain.principal import Principal
from app.errors import Conflict, Denied, InvalidRequest, NotFound

_INSERT = text("INSERT INTO roles (name, created_by) VALUES (:name, :by) ON CONFLICT DO NOTHING")
_ROLE = text("SELECT name, builtin, created_by FROM roles WHERE name = :name")
_PAGE = text("SELECT name, builtin, created_by FROM roles WHERE name > :after ORDER BY name LIMIT :limit")
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


@dataclass(frozen=True, slots=True)
class RoleCard:
    """A role as it is shown, without its members."""

    name: str
    builtin: bool
    created_by: str


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
    return await membership.present(transaction, "role", name)


async def set_members(
    transaction: Transaction, authority: Authority, by: Principal, name: str, wanted: Members
) -> Members:
    """Make `wanted` the members of a role: who is missing is added, who is not named is revoked.

    Raises `InvalidRequest`, `Conflict` for roles that would contain themselves, `NotFound`, `Denied`.
    """
    await membership.lock(transaction, "role", name)
    await _require_sway(transaction, authority, by, name)
    if wanted.roles:
        await membership.lock_nesting(transaction, "role")
    for role in wanted.roles:
        await _check_nesting(transaction, name, role)
    await membership.replace(transaction, "role", name, wanted, by)
    return wanted


async def add_members(
    transaction: Transaction, authority: Authority, by: Principal, name: str, joining: Members
) -> Members:
    """Put `joining` into a role beside those who are in it; all its members then. Raises as `set_members`."""
    await membership.lock(transaction, "role", name)
    present = await members(transaction, authority, by, name)
    return await set_members(transaction, authority, by, name, Members.of(present.pairs() | joining.pairs()))


async def remove_members(
    transaction: Transaction, authority: Authority, by: Principal, name: str, leaving: Members
) -> Members:
    """Take `leaving` out of a role; all its members then.

    Raises as `set_members`, and `NotFound` when one of them is not in it: a name misspelt must not look like done.
    """
    await membership.lock(transaction, "role", name)
    present = await members(transaction, authority, by, name)
    membership.refuse_strangers(present, leaving)
    return await set_members(transaction, authority, by, name, Members.of(present.pairs() - leaving.pairs()))


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
