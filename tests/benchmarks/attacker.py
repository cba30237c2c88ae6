"""Somebody who calls two kinds of things and guesses from the latency of one call which kind it was."""

import gc
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median

Call = Callable[[], Awaitable[object]]
_FIRST_CALLS = 40  # of either kind, not counted: what is slow once is not what is learned


@dataclass(frozen=True, slots=True)
class Attack:
    """How often the attacker was right (0..1), and the medians in milliseconds that it had to go by."""

    name: str
    right: float
    first_ms: float
    second_ms: float
    samples: int


def guess(first: Sequence[float], second: Sequence[float]) -> float:
    """The share of latencies put on the right side, every other one judged by what the rest taught, and conversely."""
    halves = [(first[start::2], second[start::2]) for start in (0, 1)]
    right = sum(_judged(learn(*halves[one]), *halves[1 - one]) for one in (0, 1))
    return right / (len(first) + len(second))


def learn(first: Sequence[float], second: Sequence[float]) -> tuple[float, bool]:
    """The threshold that divides best, and whether `first` is the slower side of it."""
    marked = sorted([(value, 1) for value in first] + [(value, -1) for value in second])
    best, lead, threshold, slower = 0, 0, marked[0][0], False
    for place, (value, side) in enumerate(marked[:-1]):
        lead += side  # how far `first` is ahead among those up to here
        if abs(lead) > best:
            best, threshold, slower = abs(lead), (value + marked[place + 1][0]) / 2, lead < 0
    return threshold, slower


def _judged(taught: tuple[float, bool], first: Sequence[float], second: Sequence[float]) -> int:
    threshold, slower = taught
    return sum((value > threshold) is slower for value in first) + sum(
        (value > threshold) is not slower for value in second
    )


async def attack(name: str, first: Sequence[Call], second: Sequence[Call], samples: int) -> Attack:
    """Make `samples` calls of either kind in random order, each kind's in turn, and guess."""
    order = [0] * samples + [1] * samples
    random.Random(name).shuffle(order)
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(_FIRST_CALLS):
        await first[-1 - number % len(first)]()
        await second[-1 - number % len(second)]()
    gc.collect()
    gc.disable()
    for kind in order:
        calls = (first, second)[kind]
        call = calls[len(taken[kind]) % len(calls)]
        began = time.perf_counter_ns()
        await call()
        taken[kind].append((time.perf_counter_ns() - began) / 1e6)
    gc.enable()
    return Attack(name, guess(*taken), median(taken[0]), median(taken[1]), samples)
