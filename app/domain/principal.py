"""Who is calling, as the channel verified it. Pure types."""

import re
from dataclasses import dataclass
from datetime import datetime

from app.domain.access import Action

LOCAL_ISSUER = "local"
_LOCAL_SUBJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+-]{0,127}")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a token was narrowed to. `None` leaves that side as wide as its owner's rights; nothing ever widens."""

    actions: frozenset[Action] | None = None
    collections: frozenset[str] | None = None
    expires_at: datetime | None = None

    def covers(self, other: "Narrowing") -> bool:
        """Whether `other` is at most as wide as this on every side."""
        return (
            (self.actions is None or (other.actions is not None and other.actions <= self.actions))
            and (self.collections is None or (other.collections is not None and other.collections <= self.collections))
            and (self.expires_at is None or (other.expires_at is not None and other.expires_at <= self.expires_at))
        )


@dataclass(frozen=True, slots=True)
class Principal:
    """The verified caller. With an `actor`, rights are the intersection of the two."""

    issuer: str
    subject: str
    groups: frozenset[str] = frozenset()
    actor: "Principal | None" = None
    narrowing: Narrowing | None = None

    @property
    def key(self) -> str:
        """The name that rules use: a local subject as it is, any other as `issuer|subject`."""
        return principal_key(self.issuer, self.subject)

    @property
    def group_keys(self) -> tuple[str, ...]:
        """The names of the principal's groups, qualified by issuer like `key`, in a fixed order."""
        return tuple(sorted(principal_key(self.issuer, group) for group in self.groups))

    @property
    def parties(self) -> tuple["Principal", ...]:
        """Everybody whose rights must cover the call: the principal, and the actor if there is one."""
        return (self,) if self.actor is None else (self, *self.actor.parties)


def principal_key(issuer: str, subject: str) -> str:
    """Name a subject (or group) of an issuer. Local names hold no `|`, so no two issuers can meet in one key."""
    return subject if issuer == LOCAL_ISSUER else f"{issuer}|{subject}"


def is_local_subject(subject: str) -> bool:
    """Whether `subject` may name a local principal or group."""
    return _LOCAL_SUBJECT.fullmatch(subject) is not None


def is_principal_key(key: str) -> bool:
    """Whether `key` is a local subject or an `issuer|subject` pair with both sides present."""
    issuer, bar, subject = key.partition("|")
    return is_local_subject(key) if not bar else bool(issuer and subject) and "\x00" not in key and len(key) <= 512
