"""Tickets: how a transaction tells row-level security who is calling, in a way that nobody else could forge."""

import base64
import hashlib
import hmac
import json
from typing import Any

from sqlalchemy import text

from app.db.session import Transaction
from app.domain.access import Action
from app.domain.principal import LOCAL_ISSUER, Principal
from app.errors import ConfigurationError

LIFETIME_SECONDS = 60.0  # at least; as long as its transaction may take, if that is longer
GRACE_SECONDS = 10.0  # for the last statement that began in time
BLOCK = 64  # bytes, of SHA-256

_SET = text("SELECT set_config('stacks.ticket', :ticket, true)")
_HOLDS = text("SELECT ticket_holds()")
_SOMEBODY = Principal(LOCAL_ISSUER, "the ticket check")  # whose rights, if any, are not asked


class TicketPrinter:
    """Signs tickets with the key that only it and the owner's `ticket_keys` table hold."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    async def present(self, transaction: Transaction, principal: Principal, action: Action) -> None:
        """Let the rest of this transaction read and write what `principal` may for `action`, and nothing else."""
        body = base64.b64encode(json.dumps(_payload(transaction, principal, action)).encode())
        signature = hmac.new(self._key, body, hashlib.sha256).hexdigest()
        await transaction.connection.execute(_SET, {"ticket": f"{body.decode()}.{signature}"})

    async def check(self, transaction: Transaction) -> None:
        """Raise `ConfigurationError` where the database knows another key, and so would show nobody anything."""
        await self.present(transaction, _SOMEBODY, Action.SEARCH)
        if not (await transaction.connection.execute(_HOLDS)).scalar_one():
            raise ConfigurationError(
                "The ticket key here is not the one that the database was migrated with. Set STACKS_TICKET_KEY (or "
                "the file secrets/ticket in the data directory) to that one, or run: stacks migrate"
            )

    def pads(self) -> tuple[bytes, bytes]:
        """The key combined with HMAC's inner and outer padding (RFC 2104), as `ticket_keys` stores it."""
        key = self._key if len(self._key) <= BLOCK else hashlib.sha256(self._key).digest()
        padded = key.ljust(BLOCK, b"\0")
        return bytes(b ^ 0x36 for b in padded), bytes(b ^ 0x5C for b in padded)


def _payload(transaction: Transaction, principal: Principal, action: Action) -> dict[str, Any]:
    return {
        "action": action.value,
        "parties": [_party(party) for party in principal.parties],
        "backend": transaction.backend,
        "transaction": transaction.epoch,
        "expires": transaction.at.timestamp() + max(LIFETIME_SECONDS, transaction.patience + GRACE_SECONDS),
    }


def _party(party: Principal) -> dict[str, Any]:
    bounds = party.narrowing
    described: dict[str, Any] = {"principal": party.key, "groups": list(party.group_keys)}
    if bounds is not None and bounds.actions is not None:
        described["actions"] = sorted(bounds.actions)
    if bounds is not None and bounds.collections is not None:
        described["collections"] = sorted(bounds.collections)
    return described
