"""Whether a sample of JSON has the shape of real JSON: the same keys, the same types, lists empty where they are."""

from collections.abc import Iterator
from typing import Any


def differences(sample: Any, real: Any, at: str = "$") -> Iterator[str]:
    """Every place where they differ. Of lists the first items are compared; null stands for any value."""
    if isinstance(sample, dict) and isinstance(real, dict):
        if sample.keys() != real.keys():
            yield f"{at}: {sorted(sample.keys() ^ real.keys())} on one side only"
        for name in sample.keys() & real.keys():
            yield from differences(sample[name], real[name], f"{at}.{name}")
    elif isinstance(sample, list) and isinstance(real, list):
        if bool(sample) != bool(real):
            yield f"{at}: empty on one side only"
        elif sample:
            yield from differences(sample[0], real[0], f"{at}[0]")
    elif None not in (sample, real) and _kind(sample) is not _kind(real):
        yield f"{at}: {type(sample).__name__} in the sample, {type(real).__name__} in fact"


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)
