"""The composition root: reads the settings, builds the parts, starts the processes."""

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import structlog
import uvicorn
from litestar import Litestar
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from app import config
from app.analysis.embedder import Embedder
from app.attendants import Attendants
from app.audit.log import CallLog
from app.audit.spool import Spool
from app.authz import builtin
from app.authz.compile import Authority
from app.config import Settings
from app.db.embedded import OWNER_LOGIN, EmbeddedCluster
from app.db.engine import create_engine
from app.db.erase import Erasure, erase
from app.db.migrate import migrate
from app.db.secrets import secret
from app.db.session import Database
from app.db.tickets import TicketPrinter
from app.entrypoints.cli.main import Kit, command_line
from app.entrypoints.http.application import create
from app.entrypoints.mcp.server import HttpMcp, serve_stdio
from app.entrypoints.services import Services
from app.errors import ConfigurationError, IndexUnavailable
from app.identity.access_tokens import AccessTokens
from app.identity.credentials import Credentials
from app.identity.issuers import configured
from app.ingest import crew
from app.ingest.parse.process import ParserLimits
from app.ingest.worker import Worker
from app.search.reading import Reader
from app.search.service import SearchService

SERVICE_LOGIN = "stacks_login"


@dataclass(frozen=True, slots=True)
class Postgres:
    """Where the database is: the service login's URL, the owner's if known, and the cluster if it is our own."""

    service_url: str
    owner_url: str
    cluster: EmbeddedCluster | None


@contextmanager
def postgres(settings: Settings) -> Iterator[Postgres]:
    """The configured Postgres, or a hold on the embedded one. Raises `ConfigurationError`, `IndexUnavailable`."""
    if settings.database_url:
        owner_url = _with_driver("DATABASE_OWNER_URL", settings.database_owner_url)
        yield Postgres(_with_driver("DATABASE_URL", settings.database_url), owner_url, None)
        return
    cluster = EmbeddedCluster(settings.data_dir, shared_buffers=settings.shared_buffers)
    with cluster as address:
        service = address.url(SERVICE_LOGIN, secret(settings.data_dir, "service"))
        yield Postgres(service, address.url(OWNER_LOGIN, secret(settings.data_dir, "owner")), cluster)


def _with_driver(setting: str, url: str) -> str:
    if not url:
        return ""
    try:
        return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    except (ArgumentError, ValueError):
        raise ConfigurationError(f"{config.PREFIX}{setting} is wrong; allowed: a Postgres URL.") from None


def _printer(settings: Settings) -> TicketPrinter:
    return TicketPrinter(settings.ticket_key or secret(settings.data_dir, "ticket"))


def build(settings: Settings, service_url: str, embedder: Embedder | None = None) -> Services:
    """Build every part of one process; with an `embedder` that is loaded already, around that."""
    printer = _printer(settings)
    database = _database(settings, service_url, printer)
    authority = Authority()
    digest_key = settings.digest_key or secret(settings.data_dir, "digest")
    calls = CallLog(database, Spool(settings.data_dir / "audit" / "spool.jsonl"), digest_key)
    embedder = embedder or Embedder.load(_model_dir(settings))
    return Services(
        database=database,
        credentials=Credentials(database, _access_tokens(settings)),
        authority=authority,
        printer=printer,
        calls=calls,
        search=SearchService(database, authority, printer, calls, embedder, settings.base_url),
        reader=Reader(authority, printer),
        worker=Worker(database, printer, embedder, _limits(settings)),
        owner_actions=builtin.builtin().owner,
        upload_max=settings.upload_max_bytes,
        base_url=settings.base_url,
        allowed_hosts=settings.hosts,
        version=version("closed-stacks"),
    )


def _access_tokens(settings: Settings) -> AccessTokens:
    return AccessTokens(configured(f"{config.PREFIX}ISSUERS", settings.issuers), f"{settings.base_url}/mcp")


def _database(settings: Settings, service_url: str, printer: TicketPrinter) -> Database:
    milliseconds = int(settings.database_seconds * 1000)
    engine = create_engine(service_url, pool_size=settings.database_pool, statement_timeout_ms=milliseconds)
    return Database(engine, check_tickets=printer.check, deadline_seconds=settings.database_seconds)


def _model_dir(settings: Settings) -> Path:
    return settings.model_dir or settings.data_dir / "models"


def _limits(settings: Settings) -> ParserLimits:
    seconds = settings.parser_seconds
    return ParserLimits(
        memory_bytes=settings.parser_memory_bytes,
        cpu_seconds=seconds,
        wall_seconds=1.5 * seconds,
        ocr_pages=settings.ocr_pages_max,
        ocr_page_seconds=settings.ocr_page_seconds,
    )


@asynccontextmanager
async def services(settings: Settings) -> AsyncIterator[Services]:
    """The parts, on a database that was found safe, for as long as the context lasts.

    Raises `ConfigurationError` for a login that row-level security would not bind, `IndexUnavailable`.
    """
    _log_to_stderr(settings)  # standard output belongs to what a command prints, and to MCP
    with postgres(settings) as found:
        # Most commands embed nothing, and need not wait until the model could.
        built = build(settings, found.service_url, Embedder.load(_model_dir(settings), at_once=False))
        try:
            await _admit(built.database)
            yield built
        finally:
            await built.database.close()


async def _admit(database: Database) -> None:
    """The check of a start, which says more than a call may: whoever started us reads it."""
    try:
        await database.check_login()
    except IndexUnavailable as fault:
        raise IndexUnavailable("Postgres does not answer the service login. Is STACKS_DATABASE_URL right?") from fault


async def _check_before_serving(settings: Settings, service_url: str) -> None:
    database = _database(settings, service_url, _printer(settings))
    try:
        await _admit(database)
    finally:
        await database.close()


def _refuse_taken_port(settings: Settings) -> None:
    """Raise `ConfigurationError` where nothing could listen: said here, where one process says it once, and plainly."""
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise ConfigurationError(
                f"Cannot listen on {settings.host}:{settings.port} ({error.strerror}). STACKS_HOST and STACKS_PORT "
                "name an address of this machine and a port that nobody listens on."
            ) from None


def migrate_all(settings: Settings) -> None:
    """Bring the schema, the logins, the ticket key and the built-in roles up to date."""
    with postgres(settings) as found:
        if not found.owner_url:
            raise ConfigurationError("Migrations need STACKS_DATABASE_OWNER_URL: the login that owns the schema.")
        migrate(found.owner_url, found.service_url, _printer(settings))
        asyncio.run(_ensure_builtin(settings, found.service_url))


def erase_all(settings: Settings) -> Erasure:
    """Erase what purges have left in the files of the tables, however large these are."""
    with postgres(settings) as found:
        if not found.owner_url:
            raise ConfigurationError("Erasing needs STACKS_DATABASE_OWNER_URL: the login that owns the schema.")
        return erase(found.owner_url)


async def _ensure_builtin(settings: Settings, service_url: str) -> None:
    database = _database(settings, service_url, _printer(settings))
    try:
        await database.write(builtin.ensure)
    finally:
        await database.close()


def create_app() -> Litestar:
    """The ASGI application of one server process; the server calls this in each."""
    _end_with_parent()
    settings = config.load()
    _log_to_stderr(settings)
    hold = postgres(settings)
    found = hold.__enter__()
    built = build(settings, found.service_url)
    metadata = f"{settings.base_url}/.well-known/oauth-protected-resource/mcp"
    mcp = HttpMcp(built, metadata)

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        try:
            await built.database.check_login()
            async with mcp.lifespan():
                yield
        finally:
            await built.database.close()
            hold.__exit__(None, None, None)

    return create(built, mcp.application, metadata, [lifespan])


def _end_with_parent() -> None:
    """One of several server processes must not go on listening, unattended, when the one that started it was killed."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, name="end with parent", daemon=True).start()


def serve(settings: Settings) -> None:
    """Serve until told to stop: server processes, ingest workers, and the embedded Postgres kept running.

    Raises `ConfigurationError` and `IndexUnavailable` before anything listens.
    """
    _log_to_stderr(settings)
    _access_tokens(settings)  # refuses a wrong setting here, not in every server process
    _refuse_taken_port(settings)
    with postgres(settings) as found:
        if found.cluster is not None:
            migrate_all(settings)
        asyncio.run(_check_before_serving(settings, found.service_url))
        with Attendants(settings.ingest_workers, found.cluster, found.owner_url):
            uvicorn.run(
                "app.bootstrap:create_app",
                factory=True,
                host=settings.host,
                port=settings.port,
                workers=settings.workers,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=5,
            )


async def work(settings: Settings, stop: asyncio.Event) -> None:
    """Run one ingest worker until `stop`."""
    async with services(settings) as parts:
        parts.worker.embedder.prepare()
        await crew.work(parts.worker, stop)


def _log_to_stderr(settings: Settings) -> None:
    """Structured lines on stderr. What libraries log is kept to warnings: they do not know what is secret."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    logging.basicConfig(level=max(level, logging.WARNING), format="%(levelname)s %(name)s %(message)s", force=True)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def main() -> None:
    """The command `stacks`. SIGTERM ends it as Ctrl-C does, so that what it holds is given up in order."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command_line(
        Kit(
            settings=config.load,
            described=config.described,
            hold=postgres,
            services=services,
            migrate=migrate_all,
            erase=erase_all,
            serve=serve,
            work=work,
            stdio=serve_stdio,
        )
    )
