"""The one way from a bearer credential to a principal, whatever kind it is of."""

from dataclasses import dataclass

from app.db.session import Database
from app.domain.principal import Principal
from app.identity import tokens
from app.identity.access_tokens import AccessTokens


@dataclass(frozen=True, slots=True)
class Credentials:
    """Personal access tokens of this instance, and access tokens of the issuers that it trusts."""

    database: Database
    access_tokens: AccessTokens

    async def authenticate(self, credential: str) -> Principal:
        """The principal that holds `credential`.

        Raises `Unauthenticated`, the same for every reason; `IndexUnavailable`, also where an issuer's keys cannot be
        had; `Timeout`.
        """
        if tokens.looks_like_token(credential):
            return await self.database.read(lambda transaction: tokens.authenticate(transaction, credential))
        return await self.access_tokens.authenticate(credential)
