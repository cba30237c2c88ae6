"""One audited request, from its arrival to its row in the log."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID, uuid4

from app.domain.principal import Principal


class Entrypoint(StrEnum):
    """The channel a call came through."""

    MCP = "mcp"
    STDIO = "stdio"
    HTTP = "http"
    CLI = "cli"
    WORKER = "worker"


@dataclass(slots=True)
class Call:
    """A call being served. The service fills in what it learns; `audit` writes it down before the answer leaves."""

    entrypoint: Entrypoint
    operation: str
    principal: Principal | None = None
    collection: str | None = None
    call_id: UUID = field(default_factory=uuid4)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    outcome: str = "internal"
    corpus_versions: tuple[str, ...] = ()
    policy_version: int | None = None
    document_ids: tuple[UUID, ...] = ()
    chunk_ids: tuple[UUID, ...] = ()
    query_digest: str | None = None
    recorded: bool = False
    _clock: float = field(default_factory=time.perf_counter)

    @property
    def latency_ms(self) -> float:
        """Milliseconds since the call arrived."""
        return (time.perf_counter() - self._clock) * 1000
