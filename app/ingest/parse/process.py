"""Parsing in a process of its own, so that a hostile file can only fail its own job."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import IO

import msgspec

from app.domain.documents import ExtractedText
from app.errors import IngestError, LimitExceeded, UnreadableFile
from app.ingest.parse.messages import Answer, Inbox, ParserLimits, Request, framed

__all__ = ["ParserLimits", "parse_isolated"]

# Ends by which the kernel, or an allocator out of memory, stops a process that asks for too much.
_LIMIT_SIGNALS = frozenset((signal.SIGKILL, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGABRT, signal.SIGTRAP))
_OUT_OF_MEMORY = 3
_PIECE = 1 << 16
_LOOK_SECONDS = 0.5  # how soon a parse that nobody waits for any more is ended
_ROOT = Path(__file__).resolve().parents[3]


def parse_isolated(
    data: bytes,
    file_name: str,
    password: str | None = None,
    *,
    limits: ParserLimits | None = None,
    given_up: threading.Event | None = None,
    read: Callable[[int, int], None] | None = None,
) -> ExtractedText:
    """`parse` in a fresh process without network, files to write, inherited environment or descriptors. Blocks.

    Where pages are pictures, `read` is told how many of how many have been read; each gets time of its own.

    Raises what `parse` raises; LimitExceeded when the process ran past a limit or `given_up` was set meanwhile, and
    UnreadableFile when it crashed.
    """
    limits = limits or ParserLimits()
    header = msgspec.msgpack.encode(Request(file_name, password, limits))
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
        answer = _exchange(process, (len(header).to_bytes(4, "big"), header, data), limits, given_up, read)
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
        "OMP_THREAD_LIMIT": "1",  # Tesseract listens to this one only
        "OPENBLAS_NUM_THREADS": "1",
        # onnxruntime reports its use to its maker unless it is told not to before it is loaded.
        "ORT_DISABLE_TELEMETRY": "1",
    }


def _exchange(
    process: subprocess.Popen[bytes],
    parts: tuple[bytes, ...],
    limits: ParserLimits,
    given_up: threading.Event | None,
    read: Callable[[int, int], None] | None,
) -> Answer | None:
    """Feeds the parts and collects the answer at the same time, up to the time and size allowed."""
    if process.stdin is None or process.stdout is None:
        raise UnreadableFile
    began = time.monotonic()
    # A code point takes at most four bytes; headings and pages repeat little of the text.
    max_bytes = 8 * limits.max_text_chars + (1 << 20)
    pending = [memoryview(part) for part in parts if part]
    inbox, answer, pages = Inbox(), None, 0
    os.set_blocking(process.stdin.fileno(), False)
    with DefaultSelector() as selector:
        selector.register(process.stdin, EVENT_WRITE)
        selector.register(process.stdout, EVENT_READ)
        while True:
            left = began + limits.wall_seconds_with(pages) - time.monotonic()
            events = selector.select(max(0.0, min(left, _LOOK_SECONDS)))
            if left <= 0 or len(inbox) > max_bytes or (given_up is not None and given_up.is_set()):
                raise LimitExceeded
            for key, _ in events:
                if key.fileobj is process.stdout:
                    piece = process.stdout.read(_PIECE)
                    if not piece:
                        return answer
                    for answer in inbox.take(piece):
                        pages += _noted(answer, read)
                elif not _fed(process.stdin, pending):
                    selector.unregister(process.stdin)
                    process.stdin.close()


def _noted(answer: Answer, read: Callable[[int, int], None] | None) -> int:
    """Passes on how far the reading is; how many pages that is more."""
    if answer.pages is None:
        return 0
    if read is not None:
        read(*answer.pages)
    return 1


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


def _result(answer: Answer | None, code: int) -> ExtractedText:
    if code == _OUT_OF_MEMORY or -code in _LIMIT_SIGNALS:
        raise LimitExceeded
    if answer is None:
        raise UnreadableFile
    return answer.text()


def _answer(request: Request, data: bytes) -> Answer:
    from app.ingest.ocr.reader import PageReader
    from app.ingest.parse import parse
    from app.ingest.parse.sandbox import allow_more

    limits = request.limits

    def begun(done: int, total: int) -> None:
        allow_more(cpu_seconds=limits.ocr_page_seconds)
        _send(Answer(pages=(done, total)))

    reader = PageReader(limits.ocr_pages, limits.ocr_page_seconds, begun)
    try:
        extracted = parse(data, request.file_name, password=request.password, reader=reader)
    except IngestError as error:
        return Answer.of(error)
    except RecursionError:
        return Answer.of(LimitExceeded())
    if len(extracted.text) > limits.max_text_chars:
        return Answer.of(LimitExceeded())
    return Answer(extracted=extracted)


def _send(answer: Answer) -> None:
    sys.stdout.buffer.write(framed(answer))
    sys.stdout.buffer.flush()


def main() -> None:
    """The child: gives up its rights, reads one request from standard input, writes its answers."""
    from app.ingest.parse.sandbox import cut_network, restrict

    read = sys.stdin.buffer.read
    request = msgspec.msgpack.decode(read(int.from_bytes(read(4), "big")), type=Request)
    limits = request.limits
    restrict(memory_bytes=limits.memory_bytes, cpu_seconds=limits.cpu_seconds, cpu_at_most=limits.cpu_seconds_at_most)
    cut_network()
    try:
        _send(_answer(request, read()))
    except MemoryError:
        sys.exit(_OUT_OF_MEMORY)


if __name__ == "__main__":
    main()
