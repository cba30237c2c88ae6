"""`stacks collection sync`: a folder on this machine and a collection brought to agree, after showing how."""

import asyncio
import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from app.entrypoints.cli.adding import Outcome, Told, add_one, leave
from app.entrypoints.cli.collecting import Slug
from app.entrypoints.cli.kit import Errand, Json, run
from app.entrypoints.cli.output import neutral, show
from app.entrypoints.cli.progress import bar
from app.errors import InvalidRequest
from app.ingest import documents, publish, sync
from app.ingest.sync import Plan

NAME_MAX = 100
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, and the name under which its files are known."""

    path: Path
    name: str

    def files(self) -> dict[str, Path]:
        """Its files by source id. Hidden ones are left out, and links, which may lead out of it."""
        return {_source(self.name, file.relative_to(self.path)): file for file in _walk(self.path)}


@dataclass(frozen=True, slots=True)
class Report:
    """What was planned, and, once it was done, what became of each file and the edition that holds it all."""

    plan: Plan
    files: list[Outcome] = field(default_factory=list)
    corpus_version: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What is wanted of a sync, beside its plan."""

    dry_run: bool
    yes: bool
    publish: bool
    as_json: bool


def sync_folder(
    context: typer.Context,
    slug: Slug,
    directory: Annotated[Path, typer.Argument(help="A folder on this machine.", metavar="DIR")],
    name: Annotated[str | None, typer.Option(help="What its files are known by; by default the folder's name.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="An access label for its files; repeat for more.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    and_publish: Annotated[bool, typer.Option("--publish", help="Publish afterwards, if every file went in.")] = False,
    every: Annotated[float | None, typer.Option(help="Again and again, this many seconds apart; with --yes.")] = None,
    as_json: Json = False,
) -> None:
    """Bring a collection into agreement with a folder: new, changed, moved and deleted files, shown before it is done.

    Exit code 0 only if every file went in.
    """
    if not directory.is_dir():
        raise InvalidRequest("DIR", "no such folder", allowed="a folder on this machine")
    if every is not None and not (yes and every > 0):
        raise InvalidRequest("--every", "without --yes, or not more than 0", allowed="seconds, together with --yes")
    if not (dry_run or yes or sys.stdin.isatty()):
        raise InvalidRequest("--yes", "nobody can be asked here", allowed="--yes to do it, --dry-run to see it")
    folder = Folder(directory, _name(directory, name))
    told = Told(None, None, tuple(label) if label else None, ())
    order = Order(dry_run, yes, and_publish, as_json)
    leave(run(context, lambda errand: _again_and_again(errand, slug, folder, told, order, every)))


def _name(directory: Path, given: str | None) -> str:
    name = directory.resolve().name if given is None else given
    if not name or "/" in name or len(name) > NAME_MAX or not name.isprintable():
        raise InvalidRequest("--name", "not a name", allowed=f"1..{NAME_MAX} characters without a slash")
    return name


async def _again_and_again(
    errand: Errand, slug: str, folder: Folder, told: Told, order: Order, every: float | None
) -> list[Outcome]:
    outcomes = await _once(errand, slug, folder, told, order)
    while every is not None:
        await asyncio.sleep(every)
        outcomes = await _once(errand, slug, folder, told, order)
    return outcomes


async def _once(errand: Errand, slug: str, folder: Folder, told: Told, order: Order) -> list[Outcome]:
    files = folder.files()
    planned = await _planned(errand, slug, folder.name, files)
    if not order.as_json:
        sys.stdout.write(_described(planned))
    report = Report(planned)
    if not (order.dry_run or planned.is_empty) and (order.yes or typer.confirm("Do it?")):
        outcomes = await _carried_out(errand, slug, planned, files, told)
        is_whole = all(outcome.status == "done" for outcome in outcomes)
        report = Report(planned, outcomes, await _published(errand, slug) if order.publish and is_whole else None)
    _tell(report, as_json=order.as_json)
    return report.files


async def _planned(errand: Errand, slug: str, name: str, files: dict[str, Path]) -> Plan:
    services, by = errand.services, errand.caller
    known = await errand.read(
        lambda snapshot: sync.known(snapshot, services.authority, services.printer, by, slug, name), slug
    )
    found = await asyncio.to_thread(lambda: {source: _sha256(path) for source, path in files.items()})
    return sync.plan(found, known)


def _described(planned: Plan) -> str:
    lines = [f"new       {source}" for source in planned.new]
    lines += [f"changed   {source}" for source in planned.changed]
    lines += [f"moved     {one.before} -> {one.source}" for one in planned.moved]
    lines += [f"deleted   {one.source}" for one in planned.gone]
    counts = f"{len(planned.new)} new, {len(planned.changed)} changed, {len(planned.moved)} moved, "
    counts += f"{len(planned.gone)} deleted, {planned.same} the same"
    return "".join(neutral(one) + "\n" for one in [*lines, counts])


async def _carried_out(errand: Errand, slug: str, planned: Plan, files: dict[str, Path], told: Told) -> list[Outcome]:
    """Moves first, removals last: whatever ends it early, nothing is gone that should be there."""
    printer, by = errand.services.printer, errand.caller
    for moved in planned.moved:
        work = partial(sync.move, printer=printer, by=by, moved=moved)
        await errand.change(work, slug, moved.document_id)
    outcomes = []
    with bar(len(planned.new) + len(planned.changed)) as progress:
        for source in (*planned.new, *planned.changed):
            progress.begin(source)
            outcomes.append(await add_one(errand, slug, files[source], told.under(source), progress))
            progress.end()
    for gone in planned.gone:
        removal = partial(documents.remove, printer=printer, by=by, document=gone.document_id)
        await errand.change(removal, slug, gone.document_id)
    return outcomes


async def _published(errand: Errand, slug: str) -> str:
    services, by = errand.services, errand.caller
    done = await errand.change(
        lambda transaction: publish.publish(transaction, services.authority, services.printer, by, slug),
        slug,
        deadline=publish.DEADLINE_SECONDS,
    )
    return done.corpus_version


def _tell(report: Report, *, as_json: bool) -> None:
    if as_json:
        show(report, as_json=True)
        return
    for outcome in report.files:
        sys.stdout.write(f"{outcome}\n")
    if report.corpus_version is not None:
        sys.stdout.write(f"published {report.corpus_version}\n")


def _walk(directory: Path) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(directory):
        subfolders[:] = sorted(one for one in subfolders if not one.startswith("."))
        for file in sorted(files):
            path = Path(folder) / file
            if not file.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _source(name: str, path: Path) -> str:
    """A path that is no UTF-8 on disk, as text that can be stored and shown."""
    return f"{name}/{os.fsencode(path.as_posix()).decode(errors='replace')}"


def _sha256(path: Path) -> str:
    """Empty for a file that cannot be read: it is there, so it is not gone; bringing it in will say what is wrong."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()
