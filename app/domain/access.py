"""Actions, rules, access classes and the scope that every search requires. Pure types."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from app.domain.principal import Narrowing, Principal


class Action(StrEnum):
    """What a rule speaks of. `create` (making a collection) is held by built-in roles only."""

    SEARCH = "search"
    OPEN = "open"
    INGEST = "ingest"
    PUBLISH = "publish"
    PURGE = "purge"
    MANAGE = "manage"
    AUDIT = "audit"
    CREATE = "create"


GRANTABLE = tuple(action for action in Action if action is not Action.CREATE)


class Effect(StrEnum):
    """A deny beats every allow."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Edge:
    """`member` belongs to `container`; both are subject names as Casbin sees them (`role:staff`)."""

    member: str
    container: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One grant in force: `subject` may (or may not) do `action` on `resource`, which lies in `collection_id`."""

    id: UUID
    subject: str
    action: Action
    effect: Effect
    resource: str
    collection_id: UUID | None


@dataclass(frozen=True, slots=True)
class PartyRules:
    """One party to a call (the principal, or the agent acting for it) and the rules that speak of it.

    `subject` is its name as Casbin sees it, `bounds` what its token was narrowed to.
    """

    subject: str
    bounds: "Narrowing | None"
    edges: tuple[Edge, ...]
    rules: tuple[Rule, ...]


def within(bounds: "Narrowing | None", action: Action, collection: str | None = None) -> bool:
    """Whether a token's bounds leave `action` in place, on `collection` or (for None) on the whole system."""
    if bounds is None:
        return True
    by_action = bounds.actions is None or action in bounds.actions
    return by_action and (bounds.collections is None or collection in bounds.collections)


@dataclass(frozen=True, slots=True)
class AccessClass:
    """Documents of one collection that every rule treats alike."""

    id: int
    collection_id: UUID
    labels: tuple[str, ...] = ()
    document_id: UUID | None = None

    @property
    def resources(self) -> tuple[str, ...]:
        """Every resource name a rule could reach this class by."""
        names = [SYSTEM, collection_resource(self.collection_id)]
        names += [label_resource(self.collection_id, label) for label in self.labels]
        return tuple(names if self.document_id is None else [*names, document_resource(self.document_id)])


SYSTEM = "system"
SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")  # of a collection; roles are named alike
LABEL = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")  # of a document, for rules to speak of; tags are spelt alike


def collection_resource(collection_id: UUID) -> str:
    """The resource name of a whole collection."""
    return f"collection:{collection_id}"


def label_resource(collection_id: UUID, label: str) -> str:
    """The resource name of one access label within one collection."""
    return f"label:{collection_id}:{label}"


def document_resource(document_id: UUID) -> str:
    """The resource name of a document with rules of its own."""
    return f"document:{document_id}"


@dataclass(frozen=True, slots=True)
class ScopedCollection:
    """A collection that an allow rule reaches, and the caller's classes in it (none yet is possible)."""

    id: UUID
    slug: str
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AccessScope:
    """What one principal may use for one action, compiled from the rules at one policy version.

    Only `app.authz` builds one (a test walks the syntax trees). There is no value that means "everything":
    what is not listed is not permitted. `expires_at` is the next moment at which a rule's time bounds change it.
    """

    principal: "Principal"
    action: Action
    policy_version: int
    collections: Mapping[str, ScopedCollection]
    system: bool
    parties: tuple[PartyRules, ...]
    expires_at: datetime | None

    def classes(self, collection: str | None = None) -> list[int]:
        """The permitted class ids, ascending; of one collection by slug, or of all."""
        chosen = self.collections.values() if collection is None else [self.collections[collection]]
        return sorted(class_id for part in chosen for class_id in part.classes)
