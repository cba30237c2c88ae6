"""What the composition root hands to every entrypoint."""

from dataclasses import dataclass

from app.audit.log import CallLog
from app.authz.compile import Authority
from app.db.session import Database
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.identity.credentials import Credentials
from app.ingest.worker import Worker
from app.search.reading import Reader
from app.search.service import SearchService


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of one running instance."""

    database: Database
    credentials: Credentials
    authority: Authority
    printer: TicketPrinter
    calls: CallLog
    search: SearchService
    reader: Reader
    worker: Worker
    owner_actions: tuple[Action, ...]
    upload_max: int
    base_url: str
    allowed_hosts: tuple[str, ...]
    version: str
