"""Parsing in a process of its own, so that a hostile file can only fail its own job."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import IO

import msgspec

from app.domain.documents import ExtractedText
from app.errors import (
    EmptyDocument,
    IngestError,
    LimitExceeded,
    PasswordRequired,
    UnreadableFile,
    UnsupportedFile,
)

_FAILURES: dict[str, type[IngestError]] = {
    error.failure: error for error in (EmptyDocument, LimitExceeded, PasswordRequired, UnreadableFile, UnsupportedFile)
}
# Ends by which the kernel, or an allocator out of memory, stops a process that asks for too much.
_LIMIT_SIGNALS = frozenset((signal.SIGKILL, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGABRT, signal.SIGTRAP))
_OUT_OF_MEMORY = 3
_PIECE = 1 << 16
_LOOK_SECONDS = 0.5  # how soon a parse that nobody waits for any more is ended
_ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """What one parser process may use: address space, processor and wall time, and code points of text."""

    memory_bytes: int = 2 * 1024**3
    cpu_seconds: int = 120
    wall_seconds: float = 180.0
    max_text_chars: int = 50_000_000


class _Request(msgspec.Struct):
    file_name: str
    password: str | None
    limits: ParserLimits


class _Answer(msgspec.Struct):
    failure: str | None = None
    extracted: ExtractedText | None = None


def parse_isolated(
    data: bytes,
    file_name: str,
    password: str | None = None,
    *,
    limits: ParserLimits | None = None,
    given_up: threading.Event | None = None,
) -> ExtractedText:
    """`parse` in a fresh process without network, files to write, inherited environment or descriptors. Blocks.

    Raises what `parse` raises; LimitExceeded when the process ran past a limit or `given_up` was set meanwhile, and
    UnreadableFile when it crashed.
    """
    limits = limits or ParserLimits()
    header = msgspec.msgpack.encode(_Request(file_name, password, limits))
    process = subprocess.Popen(
        [sys.executable, "-P", "-s", "-m", "app.ingest.parse.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=_environment(),
        start_new_session=True,
        bufsize=0,
    )
    try:
        answer = _exchange(process, (len(header).to_bytes(4, "big"), header, data), limits, given_up)
        code = process.wait(max(0.1, limits.wall_seconds))
    except subprocess.TimeoutExpired:
        raise LimitExceeded from None
    finally:
        _end(process)
    return _result(answer, code)


def _environment() -> dict[str, str]:
    return {
        "PYTHONPATH": str(_ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "LANG": "C.UTF-8",
        # One file is parsed at a time: threads and their arenas would only eat into its memory limit.
        "MALLOC_ARENA_MAX": "2",
        "TOKIO_WORKER_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def _exchange(
    process: subprocess.Popen[bytes],
    parts: tuple[bytes, ...],
    limits: ParserLimits,
    given_up: threading.Event | None,
) -> bytes:
    """Feeds the parts and collects the answer at the same time, up to the time and size allowed."""
    if process.stdin is None or process.stdout is None:
        raise UnreadableFile
    deadline = time.monotonic() + limits.wall_seconds
    # A code point takes at most four bytes; headings and pages repeat little of the text.
    max_bytes = 8 * limits.max_text_chars + (1 << 20)
    pending = [memoryview(part) for part in parts if part]
    answer = bytearray()
    os.set_blocking(process.stdin.fileno(), False)
    with DefaultSelector() as selector:
        selector.register(process.stdin, EVENT_WRITE)
        selector.register(process.stdout, EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            events = selector.select(max(0.0, min(left, _LOOK_SECONDS)))
            if left <= 0 or len(answer) > max_bytes or (given_up is not None and given_up.is_set()):
                raise LimitExceeded
            for key, _ in events:
                if key.fileobj is process.stdout:
                    piece = process.stdout.read(_PIECE)
                    if not piece:
                        return bytes(answer)
                    answer += piece
                elif not _fed(process.stdin, pending):
                    selector.unregister(process.stdin)
                    process.stdin.close()


def _fed(stream: IO[bytes], pending: list[memoryview]) -> bool:
    """Writes what fits now; False when all is written or the other side reads no more."""
    try:
        written = os.write(stream.fileno(), pending[0][:_PIECE])
    except BrokenPipeError:
        return False
    pending[0] = pending[0][written:]
    if not pending[0]:
        pending.pop(0)
    return bool(pending)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream and not stream.closed:
            stream.close()


def _result(answer: bytes, code: int) -> ExtractedText:
    if code == _OUT_OF_MEMORY or -code in _LIMIT_SIGNALS:
        raise LimitExceeded
    try:
        decoded = msgspec.msgpack.decode(answer, type=_Answer)
    except msgspec.DecodeError:
        raise UnreadableFile from None
    if decoded.extracted is None:
        raise _FAILURES.get(decoded.failure or "", UnreadableFile)
    return decoded.extracted


def _answer(request: _Request, data: bytes) -> _Answer:
    from app.ingest.parse import parse

    try:
        extracted = parse(data, request.file_name, password=request.password)
    except IngestError as error:
        return _Answer(failure=error.failure)
    except RecursionError:
        return _Answer(failure=LimitExceeded.failure)
    if len(extracted.text) > request.limits.max_text_chars:
        return _Answer(failure=LimitExceeded.failure)
    return _Answer(extracted=extracted)


def main() -> None:
    """The child: gives up its rights, reads one request from standard input, writes one answer."""
    from app.ingest.parse.sandbox import cut_network, restrict

    read = sys.stdin.buffer.read
    request = msgspec.msgpack.decode(read(int.from_bytes(read(4), "big")), type=_Request)
    restrict(memory_bytes=request.limits.memory_bytes, cpu_seconds=request.limits.cpu_seconds)
    cut_network()
    try:
        sys.stdout.buffer.write(msgspec.msgpack.encode(_answer(request, read())))
        sys.stdout.buffer.flush()
    except MemoryError:
        sys.exit(_OUT_OF_MEMORY)


if __name__ == "__main__":
    main()
