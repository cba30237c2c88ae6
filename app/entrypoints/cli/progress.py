"""Progress on a terminal (stderr), and silence elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from app.entrypoints.cli.output import neutral


class Bar:
    """A bar over a number of things, of which the present one may be done in part."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._whole = 0

    def begin(self, name: str) -> None:
        """Say what is being done."""
        self._progress.update(self._task, description=neutral(name))

    def share(self, share: float) -> None:
        """How much of the present thing is done, 0..1."""
        self._progress.update(self._task, completed=self._whole + share)

    def end(self) -> None:
        """The present thing is done."""
        self._whole += 1
        self._progress.update(self._task, completed=self._whole)

    def say(self, line: str) -> None:
        """Print a line on standard output without tearing the bar."""
        if self._progress.disable:
            sys.stdout.write(line + "\n")
        else:
            self._progress.stop()
            sys.stdout.write(line + "\n")
            self._progress.start()


@contextmanager
def bar(total: int) -> Iterator[Bar]:
    """A bar for the length of the context, if stderr is a terminal."""
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        yield Bar(progress, progress.add_task("", total=total))
