"""The fixture's original files, and what they hash to."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from acceptance.questions import Question, SuiteError


class _Document(msgspec.Struct, frozen=True):
    path: str
    source_id: str
    edition: int = 1


class _Corpus(msgspec.Struct, frozen=True):
    documents: tuple[_Document, ...]


def load_originals(path: Path) -> dict[tuple[str, int], str]:
    """SHA-256 (hex) of every file that `corpus.toml` lists, by source id and edition.

    Files are named relative to the TOML file. Raises `SuiteError`, also when an edition is listed twice.
    """
    originals: dict[tuple[str, int], str] = {}
    try:
        for document in msgspec.toml.decode(path.read_bytes(), type=_Corpus).documents:
            key = (document.source_id, document.edition)
            if key in originals:
                raise SuiteError(f"{path}: {document.source_id}, edition {document.edition}, is listed twice")
            originals[key] = hashlib.sha256((path.parent / document.path).read_bytes()).hexdigest()
    except (OSError, msgspec.MsgspecError) as error:
        raise SuiteError(f"{path}: {error}") from error
    return originals


def check_documents(questions: Iterable[Question], originals: Mapping[tuple[str, int], str]) -> None:
    """Every question names a document and an edition that exist. Raises `SuiteError`: no server could be right."""
    sources = {source for source, _ in originals}
    for question in questions:
        if question.document and question.document not in sources:
            raise SuiteError(f"question {question.id}: {question.document} is not in the corpus")
        if question.document and question.edition and (question.document, question.edition) not in originals:
            raise SuiteError(f"question {question.id}: {question.document} has no edition {question.edition}")
