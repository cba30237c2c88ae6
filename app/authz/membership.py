"""The members of a role or group, as rows that begin, end and are never deleted. Who may change them, others say."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import text

from app.db.session import Transaction
from app.domain.principal import Principal, is_principal_key
from app.errors import InvalidRequest, NotFound

_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:kind || ' ' || :name, 0))")
_PRESENT = text("""
    SELECT member_kind, member FROM memberships
    WHERE container_kind = :container_kind AND container = :container AND revoked_at IS NULL ORDER BY 1, 2
""")
_ADD = text("""
    INSERT INTO memberships (member_kind, member, container_kind, container, granted_by)
    VALUES (:kind, :member, :container_kind, :container, :by) ON CONFLICT DO NOTHING
""")
_REMOVE = text("""
    UPDATE memberships SET revoked_at = now(), revoked_by = :by
    WHERE container_kind = :container_kind AND container = :container AND revoked_at IS NULL
      AND member_kind = :kind AND member = :member
""")


@dataclass(frozen=True, slots=True)
class Members:
    """Who is in a role or group: principals and groups by key, roles by name."""

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


async def lock(transaction: Transaction, kind: str, name: str) -> None:
    """One change at a time of what is in this role or group, until the transaction ends."""
    await transaction.connection.execute(_LOCK, {"kind": kind, "name": name})


async def lock_nesting(transaction: Transaction, kind: str) -> None:
    """One change at a time of which roles, or which groups, are within which: two halves of a ring made at once would
    each see no ring. To be taken after `lock`, and before looking.
    """
    await transaction.connection.execute(_LOCK, {"kind": f"{kind}s within", "name": f"{kind}s"})


async def present(transaction: Transaction, kind: str, name: str) -> Members:
    """Who is in it."""
    rows = await transaction.connection.execute(_PRESENT, {"container_kind": kind, "container": name})
    return Members.of((member_kind, member) for member_kind, member in rows)


async def replace(transaction: Transaction, kind: str, name: str, wanted: Members, by: Principal) -> None:
    """Make `wanted` its members: who is missing is added, who is not named is revoked. Raises `InvalidRequest`."""
    _check_names(wanted)
    before = (await present(transaction, kind, name)).pairs()
    for statement, pairs in ((_REMOVE, before - wanted.pairs()), (_ADD, wanted.pairs() - before)):
        for member_kind, member in sorted(pairs):
            values = {"kind": member_kind, "member": member, "container_kind": kind, "container": name, "by": by.key}
            await transaction.connection.execute(statement, values)


def refuse_strangers(members: Members, leaving: Members) -> None:
    """Raise `NotFound` when one of `leaving` is not among `members`: a name misspelt must not look like done."""
    strangers = sorted(member for _, member in leaving.pairs() - members.pairs())
    if strangers:
        raise NotFound(f"Not in it: {', '.join(strangers)}.")


def _check_names(wanted: Members) -> None:
    for field, names in (("principals", wanted.principals), ("groups", wanted.groups)):
        for name in names:
            if not is_principal_key(name):
                raise InvalidRequest(field, "not a principal or group", allowed="a local name, or issuer|name")
