"""Parts of an Office Open XML package, read with bounds."""

import io
import posixpath
import zipfile
import zlib
from collections.abc import Callable
from types import TracebackType
from typing import Self
from xml.parsers import expat

from app.errors import LimitExceeded, UnreadableFile

MAX_PART_BYTES = 512 * 1024 * 1024
_BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error)
_PIECE = 1 << 20

Attributes = dict[str, str]


class Package:
    """One open package. Every method raises UnreadableFile when the container is damaged."""

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except _BROKEN as error:
            raise UnreadableFile from error
        self._names = frozenset(self._archive.namelist())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._archive.close()

    def related(self, part: str, relationship: str) -> str | None:
        """The part that `part` ("" for the package) points to by a relationship of that last word, if it exists."""
        folder, name = posixpath.split(part)
        rels = posixpath.join(folder, "_rels", f"{name}.rels")
        found: list[str] = []

        def start(tag: str, attributes: Attributes) -> None:
            if tag.rpartition(" ")[2] == "Relationship" and attributes.get("Type", "").endswith(f"/{relationship}"):
                found.append(attributes.get("Target", ""))

        if rels in self._names:
            self.walk(rels, start)
        names = (posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/") for target in found)
        return next((name for name in names if name in self._names), None)

    def walk(
        self,
        part: str,
        start: Callable[[str, Attributes], None],
        end: Callable[[str], None] | None = None,
        text: Callable[[str], None] | None = None,
    ) -> None:
        """Streams the XML of `part` to the callbacks; tags come as `namespace name`.

        External entities are never opened: expat skips them when nobody asks for them.
        """
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = text
        read = 0
        try:
            with self._archive.open(part) as stream:
                while piece := stream.read(_PIECE):
                    if (read := read + len(piece)) > MAX_PART_BYTES:
                        raise LimitExceeded
                    parser.Parse(piece, False)
                parser.Parse(b"", True)
        except (*_BROKEN, expat.ExpatError) as error:
            raise UnreadableFile from error
