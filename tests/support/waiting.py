"""Waiting for a condition, with a bound: a test that waits for nothing fails, and says for what."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

PAUSE = 0.05


def until(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Ask `condition` again and again until it holds. AssertionError naming `what` when it never does."""
    pause = threading.Event()
    for _ in range(int(seconds / PAUSE)):
        if condition():
            return
        pause.wait(PAUSE)
    raise AssertionError(f"never came: {what}")


async def until_async(condition: Callable[[], Awaitable[bool]], what: str, seconds: float = 60) -> None:
    """`until` for a condition that must be awaited."""
    for _ in range(int(seconds / PAUSE)):
        if await condition():
            return
        await asyncio.sleep(PAUSE)
    raise AssertionError(f"never came: {what}")
