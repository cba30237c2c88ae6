"""The caller's rules, by one indexed query that is led by the caller: its cost does not depend on anybody else's."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from app.db.session import Transaction
from app.domain.access import SYSTEM, AccessClass, Action, Edge, Effect, PartyRules, Rule
from app.domain.principal import Narrowing, Principal

# `known` at the asked moment: granted by then and not revoked by then. `in_force`: within its own bounds too.
# For now, all that the snapshot shows is known: a change committed between this transaction's begin and its first
# statement bears a later stamp than now(), and must count all the same, as it does for row-level security.
_LOAD = text("""
WITH RECURSIVE asked AS (SELECT coalesce(CAST(:at AS timestamptz), now()) AS at,
                                coalesce(CAST(:at AS timestamptz), 'infinity') AS seen),
held AS (
    SELECT kind, name FROM unnest(CAST(:kinds AS text[]), CAST(:names AS text[])) AS seed (kind, name)
    UNION
    SELECT m.container_kind, m.container
    FROM held h JOIN memberships m ON m.member_kind = h.kind AND m.member = h.name, asked
    WHERE m.granted_at <= asked.seen AND (m.revoked_at IS NULL OR m.revoked_at > asked.seen)
      AND m.valid_from <= asked.at AND (m.valid_until IS NULL OR m.valid_until > asked.at)
),
edges AS (
    SELECT h.kind, h.name, m.container_kind, m.container, m.valid_from, m.valid_until,
           m.valid_from <= asked.at AND (m.valid_until IS NULL OR m.valid_until > asked.at) AS in_force
    FROM held h JOIN memberships m ON m.member_kind = h.kind AND m.member = h.name, asked
    WHERE m.granted_at <= asked.seen AND (m.revoked_at IS NULL OR m.revoked_at > asked.seen)
      AND (m.valid_until IS NULL OR m.valid_until > asked.at)
),
known AS (
    SELECT g.*, g.valid_from <= asked.at AS in_force
    FROM held h JOIN grants g ON g.subject_kind = h.kind AND g.subject = h.name AND g.action = :action, asked
    WHERE g.granted_at <= asked.seen AND (g.revoked_at IS NULL OR g.revoked_at > asked.seen)
      AND (g.valid_until IS NULL OR g.valid_until > asked.at)
),
in_force AS MATERIALIZED (SELECT * FROM known WHERE in_force),
touched AS (
    SELECT id, collection_id, bool_or(effect = 'allow') AS allows, bool_or(effect = 'deny') AS denies FROM (
        SELECT c.id, c.collection_id, r.effect FROM in_force r, access_classes c WHERE r.resource_kind = 'system'
        UNION ALL
        SELECT c.id, c.collection_id, r.effect FROM in_force r JOIN access_classes c USING (collection_id)
        WHERE r.resource_kind = 'collection' OR (r.resource_kind = 'label' AND r.label = ANY (c.labels))
        UNION ALL
        SELECT c.id, c.collection_id, r.effect FROM in_force r JOIN access_classes c ON c.document_id = r.document_id
        WHERE r.resource_kind = 'document'
    ) reached GROUP BY id, collection_id
)
SELECT
    (SELECT json_agg(json_build_array(kind || ':' || name, container_kind || ':' || container)) FROM edges
     WHERE in_force) AS edges,
    (SELECT json_agg(json_build_array(id, subject_kind || ':' || subject, effect, resource_kind, collection_id, label,
                                      document_id)) FROM in_force) AS rules,
    (SELECT json_agg(json_build_array(collection_id, allows, denies, ids)) FROM (
        SELECT collection_id, allows, denies, array_agg(id) AS ids FROM touched GROUP BY 1, 2, 3
     ) alike) AS classes,
    (SELECT json_agg(json_build_array(e.allows, e.denies, c.id, c.collection_id, c.labels, c.document_id)) FROM (
        SELECT allows, denies, min(id) AS id FROM touched GROUP BY 1, 2
     ) e JOIN access_classes c ON c.id = e.id) AS examples,
    (SELECT json_agg(json_build_array(id, slug)) FROM (
        SELECT id, slug FROM collections WHERE id = ANY (ARRAY(SELECT collection_id FROM in_force))
        UNION
        SELECT id, slug FROM collections WHERE EXISTS (SELECT FROM in_force WHERE resource_kind = 'system')
     ) named) AS collections,
    (SELECT min(moment) FROM (
        SELECT unnest(ARRAY[valid_from, valid_until]) AS moment FROM edges
        UNION ALL SELECT unnest(ARRAY[valid_from, valid_until]) FROM known) b, asked
     WHERE moment > asked.at) AS expires_at
""")


@dataclass(frozen=True, slots=True)
class TouchedClasses:
    """Access classes of one collection that rules of the caller reach, all with the same effects."""

    collection_id: UUID
    effects: frozenset[Effect]
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoadedRules:
    """All that the rules say about one party and one action at one moment, before anything is decided.

    `examples` holds one class for each set of effects that is among `classes`: what Casbin says of it, it says of all.
    """

    rules: PartyRules
    classes: tuple[TouchedClasses, ...]
    examples: dict[frozenset[Effect], AccessClass]
    collections: dict[UUID, str]
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom rules are loaded for: a party to a call with the groups that its token claims, or a role or group alone."""

    kind: str
    name: str
    groups: tuple[str, ...] = ()
    bounds: Narrowing | None = None

    @property
    def qualified(self) -> str:
        """Its name as Casbin sees it."""
        return f"{self.kind}:{self.name}"


def party(principal: Principal) -> Subject:
    """The subject that a party to a call is."""
    return Subject("principal", principal.key, principal.group_keys, principal.narrowing)


async def load(
    transaction: Transaction, subject: Subject, action: Action, *, at: datetime | None = None
) -> LoadedRules:
    """Load what concerns `subject` and `action`, now (in the transaction's snapshot) or as it stood `at` a moment."""
    values = {
        "kinds": [subject.kind, *("group" for _ in subject.groups)],
        "names": [subject.name, *subject.groups],
        "action": action.value,
        "at": at,
    }
    row = (await transaction.connection.execute(_LOAD, values)).one()
    keys = {key for key, *_ in (*(row.collections or ()), *(row.classes or ()))}
    ids = {key: UUID(key) for key in keys}
    claimed = [Edge(subject.qualified, f"group:{group}") for group in subject.groups]
    edges = (*claimed, *(Edge(member, container) for member, container in row.edges or ()))
    rules = tuple(_rule(ids, action, *fields) for fields in row.rules or ())
    return LoadedRules(
        rules=PartyRules(subject.qualified, subject.bounds, edges, rules),
        classes=tuple(
            TouchedClasses(ids[collection], _EFFECTS[allows, denies], tuple(classes))
            for collection, allows, denies, classes in row.classes or ()
        ),
        examples={
            _EFFECTS[allows, denies]: AccessClass(id_, ids[collection], tuple(labels), document and UUID(document))
            for allows, denies, id_, collection, labels, document in row.examples or ()
        },
        collections={ids[key]: slug for key, slug in row.collections or ()},
        expires_at=row.expires_at,
    )


_EFFECT = {effect.value: effect for effect in Effect}
_EFFECTS = {
    (True, False): frozenset({Effect.ALLOW}),
    (False, True): frozenset({Effect.DENY}),
    (True, True): frozenset({Effect.ALLOW, Effect.DENY}),
}


def _rule(
    ids: dict[str, UUID],
    action: Action,
    id_: str,
    held_by: str,
    effect: str,
    kind: str,
    collection: str | None,
    label: str | None,
    document: str | None,
) -> Rule:
    if kind == "label":
        resource = f"label:{collection}:{label}"
    else:
        resource = SYSTEM if kind == "system" else f"{kind}:{document or collection}"
    return Rule(UUID(id_), held_by, action, _EFFECT[effect], resource, ids[collection] if collection else None)
