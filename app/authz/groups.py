"""Groups: what a token claims, named by its issuer (`issuer|name`), and local ones. A group may hold groups of any
issuer, so that two directories can be brought together. Only who manages the whole system may change one: every
collection's rules may speak of it.
"""

from sqlalchemy import text

from app.authz import membership
from app.authz.check import require_system
from app.authz.compile import Authority
from app.authz.membership import Members
from app.db.session import Transaction
from app.domain.access import Action
from app.domain.principal import Principal, is_principal_key
from app.errors import Conflict, InvalidRequest

_IS_ABOVE = text("""
    WITH RECURSIVE above AS (
        SELECT CAST(:group AS text) AS name
        UNION
        SELECT m.container FROM above a JOIN memberships m ON m.member_kind = 'group' AND m.member = a.name
        WHERE m.container_kind = 'group' AND m.revoked_at IS NULL
    )
    SELECT FROM above WHERE name = :member
""")


async def members(transaction: Transaction, authority: Authority, by: Principal, name: str) -> Members:
    """Who was put into a group here; whom a token puts there, only the token knows. Raises `Denied`."""
    await require_system(authority, transaction, by, Action.MANAGE)
    return await membership.present(transaction, "group", name)


async def set_members(
    transaction: Transaction, authority: Authority, by: Principal, name: str, wanted: Members
) -> Members:
    """Make `wanted` the principals and groups in a group.

    Raises `InvalidRequest`, `Conflict` for groups that would contain themselves, `Denied`.
    """
    await require_system(authority, transaction, by, Action.MANAGE)
    if not is_principal_key(name):
        raise InvalidRequest("group", "not a group", allowed="a local name, or issuer|name")
    if wanted.roles:
        raise InvalidRequest("roles", "in a group", allowed="principals and groups; put the group into the role")
    await membership.lock(transaction, "group", name)
    if wanted.groups:
        await membership.lock_nesting(transaction, "group")
    for member in wanted.groups:
        values = {"group": name, "member": member}
        if (await transaction.connection.execute(_IS_ABOVE, values)).first() is not None:
            raise Conflict("A group cannot contain itself, directly or through others.")
    await membership.replace(transaction, "group", name, wanted, by)
    return wanted


async def add_members(
    transaction: Transaction, authority: Authority, by: Principal, name: str, joining: Members
) -> Members:
    """Put `joining` into a group beside what is in it; all of it then. Raises as `set_members`."""
    await membership.lock(transaction, "group", name)
    before = await members(transaction, authority, by, name)
    return await set_members(transaction, authority, by, name, Members.of(before.pairs() | joining.pairs()))


async def remove_members(
    transaction: Transaction, authority: Authority, by: Principal, name: str, leaving: Members
) -> Members:
    """Take `leaving` out of a group; what is left then. Raises as `set_members`, and `NotFound` for strangers."""
    await membership.lock(transaction, "group", name)
    before = await members(transaction, authority, by, name)
    membership.refuse_strangers(before, leaving)
    return await set_members(transaction, authority, by, name, Members.of(before.pairs() - leaving.pairs()))
