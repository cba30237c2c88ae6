"""`stacks document add`: files become drafts, one after the other; one that cannot be taken does not stop the rest."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from app.entrypoints.cli.collecting import Slug
from app.entrypoints.cli.kit import Errand, Json, hint, line, run
from app.entrypoints.cli.output import DENIED, OTHER, neutral, show
from app.entrypoints.cli.progress import Bar, bar
from app.entrypoints.cli.uploading import bring_in
from app.errors import Denied, IngestError, InvalidRequest, PayloadTooLarge, StacksError, UnreadableFile
from app.ingest.store import Upload


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file. `code` and `message` say why it did not go in."""

    file: str
    document_id: UUID | None = None
    job_id: UUID | None = None
    status: str = "failed"
    dedup_hit: bool = False
    code: str | None = None
    message: str | None = None

    def __str__(self) -> str:
        if self.code is not None:
            return neutral(f"{self.file}: {self.code}: {self.message}")
        again = ", dedup_hit: these bytes are here already" if self.dedup_hit else ""
        return neutral(f"{self.file}: document {self.document_id}, {self.status}{again}")


@dataclass(frozen=True, slots=True)
class Told:
    """What the command line said of the files. `labels` None leaves those of a known document as they are."""

    title: str | None
    source_id: str | None
    labels: tuple[str, ...] | None
    tags: tuple[str, ...]

    def under(self, source: str) -> "Told":
        """The same for one file of many, known by `source`."""
        return replace(self, source_id=source)


def add(
    context: typer.Context,
    slug: Slug,
    paths: Annotated[list[Path], typer.Argument(help="Files.")],
    title: Annotated[str | None, typer.Option(help="By default the file's name; for one file only.")] = None,
    source_id: Annotated[
        str | None, typer.Option(help="Same id, same document: a new version of it. By default the file's name.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="An access label; repeat for more.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; repeat for more.")] = None,
    as_json: Json = False,
) -> None:
    """Add files to a collection as drafts, and read them here and now; `publish` makes them an edition.

    Exit code 0 only if every file went in; 3 or 4 when the collection is refused, 1 for any other failure.
    """
    told = Told(
        None if title is None else line("--title", title),
        None if source_id is None else line("--source-id", source_id),
        tuple(label) if label else None,
        tuple(tag or ()),
    )
    _check(paths, told)
    outcomes: list[Outcome] = []
    try:
        run(context, lambda errand: _add_all(errand, slug, paths, told, outcomes, quiet=as_json))
    finally:  # whatever ends it early, it is told which files are in
        if as_json:
            show(outcomes, as_json=True)
    leave(outcomes)


def _check(paths: Sequence[Path], told: Told) -> None:
    if len(paths) > 1 and (told.title is not None or told.source_id is not None):
        raise InvalidRequest("--title, --source-id", "given for several files", allowed="with exactly one file")
    twice = [name for name, times in Counter(path.name for path in paths).items() if times > 1]
    if twice:
        raise InvalidRequest(
            "PATH",
            f"two files are called {twice[0]}: one would replace the other",
            allowed="one at a time, with --source-id",
        )


async def _add_all(
    errand: Errand, slug: str, paths: Sequence[Path], told: Told, outcomes: list[Outcome], *, quiet: bool
) -> None:
    with bar(len(paths)) as progress:
        for path in paths:
            progress.begin(str(path))
            outcome = await add_one(errand, slug, path, told, progress)
            outcomes.append(outcome)
            progress.end()
            if not quiet:
                progress.say(str(outcome))


async def add_one(errand: Errand, slug: str, path: Path, told: Told, progress: Bar) -> Outcome:
    """Bring one file in. Raises what concerns them all: no such collection, the database is away."""
    shown = _readable(str(path))
    try:
        content = _content(path, errand.services.upload_max)
        upload = Upload(_readable(path.name), content, told.title, told.source_id, told.labels, told.tags)
        receipt, job = await bring_in(errand, slug, upload, progress.share)
    except (IngestError, InvalidRequest, PayloadTooLarge, Denied) as error:
        return Outcome(shown, code=_code(error), message=error.message)
    return Outcome(shown, receipt.document_id, receipt.job_id, job.status, receipt.dedup_hit, job.code, job.message)


def _content(path: Path, most: int) -> bytes:
    """The file's bytes, at most one more than may go in. Raises `UnreadableFile`; pipes and devices are not opened."""
    try:
        if not path.is_file():
            raise UnreadableFile("not a file" if path.exists() else "no such file")
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise UnreadableFile(f"cannot be opened: {error.strerror}") from error


def _readable(name: str) -> str:
    """A name that is no UTF-8 on disk, as text that can be stored and shown."""
    return os.fsencode(name).decode(errors="replace")


def _code(error: StacksError) -> str:
    return error.failure if isinstance(error, IngestError) else error.code


def leave(outcomes: Sequence[Outcome]) -> None:
    """End the command with a code that says whether every file went in; 0 by returning."""
    codes = {outcome.code for outcome in outcomes if outcome.status != "done"}
    if not codes:
        return
    code = DENIED if Denied.code in codes else OTHER
    if hint(code):
        typer.echo(f"hint: {hint(code)}", err=True)
    raise SystemExit(code)
