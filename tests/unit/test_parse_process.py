"""The parser process: same result as in the open, its limits hold, nothing gets out."""

import ctypes
import multiprocessing
import os
import resource
import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from app.errors import EmptyDocument, LimitExceeded, PasswordRequired, UnreadableFile, UnsupportedFile
from app.ingest.parse import parse
from app.ingest.parse.process import ParserLimits, parse_isolated
from app.ingest.parse.sandbox import allow_more, cut_network, restrict

HTML = b"<html><h1>Title</h1><p>Text of the page</p></html>"


def test_same_result_as_in_the_open() -> None:
    assert parse_isolated(HTML, "a.html") == parse(HTML, "a.html")


def test_large_input_and_output_pass_the_pipes() -> None:
    text = "строка текста\n" * 300_000
    assert parse_isolated(text.encode(), "a.txt").text == text


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", EmptyDocument),
        (bytes(range(256)), UnsupportedFile),
        (b"PK\x03\x04broken", UnreadableFile),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), PasswordRequired),
    ],
)
def test_errors_come_through(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_isolated(data, "a")


@pytest.mark.parametrize(
    "limits",
    [
        ParserLimits(wall_seconds=0.01),
        ParserLimits(cpu_seconds=0),
        ParserLimits(max_text_chars=10),
    ],
)
def test_past_a_limit(limits: ParserLimits) -> None:
    with pytest.raises(LimitExceeded):
        parse_isolated(b"<p>word" * 400_000, "a.html", limits=limits)


def test_memory_limit_stops_a_hungry_file() -> None:
    with pytest.raises(LimitExceeded):
        parse_isolated(b"<p>word" * 4_000_000, "a.html", limits=ParserLimits(memory_bytes=150 * 1024**2))


def test_environment_is_not_inherited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A start-up hook that a parent's environment would bring along.
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert parse_isolated(b"text", "a.txt").text == "text"


def _attempts(out: Connection, target: Path) -> None:
    restrict(memory_bytes=2 * 1024**3, cpu_seconds=20)
    filtered = cut_network()
    found: dict[str, object] = {"filtered": filtered}
    try:
        socket.create_connection(("127.0.0.1", 9))
    except OSError as error:
        found["python"] = type(error).__name__
    if filtered:
        found["native"] = ctypes.CDLL(None, use_errno=True).socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    try:
        os.posix_spawn(sys.executable, [sys.executable], {})
    except OSError as error:
        found["program"] = type(error).__name__
    try:
        target.write_text("x")
    except OSError:
        found["file"] = "refused"
    out.send(found)


def test_process_gives_up_network_programs_and_files(tmp_path: Path) -> None:
    inside, outside = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_attempts, args=(inside, tmp_path / "x"))
    process.start()
    assert outside.poll(60)
    found = outside.recv()
    process.join()
    assert found["python"] == found["program"] == "PermissionError"
    assert found["file"] == "refused"
    if found["filtered"]:
        assert found["native"] == -1


def _times(out: Connection) -> None:
    restrict(memory_bytes=2 * 1024**3, cpu_seconds=20, cpu_at_most=50)
    found = [resource.getrlimit(resource.RLIMIT_CPU)]
    for _ in range(2):
        allow_more(cpu_seconds=20)
        found.append(resource.getrlimit(resource.RLIMIT_CPU))
    out.send(found)


def test_more_time_is_given_up_to_an_end() -> None:
    inside, outside = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_times, args=(inside,))
    process.start()
    assert outside.poll(60)
    assert outside.recv() == [(20, 50), (40, 50), (50, 50)]
    process.join()


def test_pages_that_are_pictures_have_time_of_their_own() -> None:
    limits = ParserLimits(cpu_seconds=10, wall_seconds=15, ocr_pages=4, ocr_page_seconds=20)
    assert limits.cpu_seconds_at_most == 90
    assert [limits.wall_seconds_with(pages) for pages in (0, 1, 4, 400)] == [15, 45, 135, 135]
