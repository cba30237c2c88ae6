"""Built-in roles: kept as data in `policies/`, put into the database as ordinary rows that name the system."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from app.db.session import Transaction
from app.domain.access import Action
from app.domain.principal import LOCAL_ISSUER, Principal

BUILTIN = Path(__file__).parents[2] / "policies" / "builtin.toml"
# Whoever may run commands on the server itself. It holds the role of administrators: it runs the place, and reads
# no document.
OPERATOR = Principal(LOCAL_ISSUER, "operator")

_ROLE = text("INSERT INTO roles (name, builtin, created_by) VALUES (:role, true, 'builtin') ON CONFLICT DO NOTHING")
_RULE = text("""
    INSERT INTO grants (subject_kind, subject, action, effect, resource_kind, reason, granted_by)
    SELECT 'role', :role, :action, 'allow', 'system', 'built in', 'builtin'
    WHERE NOT EXISTS (SELECT FROM grants WHERE subject_kind = 'role' AND subject = :role AND action = :action
                      AND resource_kind = 'system' AND revoked_at IS NULL)
""")
_MEMBER = text("""
    INSERT INTO memberships (member_kind, member, container_kind, container, reason, granted_by)
    SELECT 'principal', :member, 'role', 'administrator', 'built in', 'builtin'
    WHERE NOT EXISTS (SELECT FROM memberships WHERE member_kind = 'principal' AND member = :member
                      AND container_kind = 'role' AND container = 'administrator' AND revoked_at IS NULL)
""")


@dataclass(frozen=True, slots=True)
class Builtin:
    """What `policies/builtin.toml` says: actions of each built-in role, and those of who owns a collection."""

    roles: dict[str, tuple[Action, ...]]
    owner: tuple[Action, ...]


def builtin() -> Builtin:
    """Read the file. A word in it that is no action raises ValueError: it ships with the code."""
    said = tomllib.loads(BUILTIN.read_text())
    roles = {role["name"]: tuple(map(Action, role["allow"])) for role in said["roles"]}
    return Builtin(roles, tuple(map(Action, said["owner"]["allow"])))


async def ensure(transaction: Transaction) -> None:
    """Put the built-in roles, their rules and the operator in place, where they are missing."""
    for role, actions in builtin().roles.items():
        await transaction.connection.execute(_ROLE, {"role": role})
        for action in actions:
            await transaction.connection.execute(_RULE, {"role": role, "action": action.value})
    await transaction.connection.execute(_MEMBER, {"member": OPERATOR.key})
