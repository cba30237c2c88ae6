"""The fixture's original files, and what they hash to."""

import hashlib
from pathlib import Path

import msgspec

from acceptance.questions import SuiteError


class _Edition(msgspec.Struct, frozen=True):
    file: str


class _Document(msgspec.Struct, frozen=True):
    source_id: str
    editions: tuple[_Edition, ...]


class _Corpus(msgspec.Struct, frozen=True):
    documents: tuple[_Document, ...]


def load_originals(path: Path) -> dict[tuple[str, int], str]:
    """SHA-256 (hex) of every file that `corpus.toml` lists, by source id and edition, counted from 1.

    Files are named relative to the TOML file. Raises `SuiteError`.
    """
    try:
        corpus = msgspec.toml.decode(path.read_bytes(), type=_Corpus)
        return {
            (document.source_id, number): hashlib.sha256((path.parent / edition.file).read_bytes()).hexdigest()
            for document in corpus.documents
            for number, edition in enumerate(document.editions, start=1)
        }
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise SuiteError(f"{path}: {error}") from error
