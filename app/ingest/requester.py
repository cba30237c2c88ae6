"""A job remembers for whom it works, so that its rights are asked again when it runs."""

import msgspec

from app.domain.principal import Principal

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Principal)


def as_json(principal: Principal) -> str:
    """The principal as the jobs table keeps it."""
    return _encoder.encode(principal).decode()


def from_json(stored: str) -> Principal:
    """The reverse of `as_json`."""
    return _decoder.decode(stored)
