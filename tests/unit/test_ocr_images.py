"""Image files: every kind, odd pixels, several pages, and files made to do harm."""

import struct
import zlib
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from support.scans import encoded, page

from app.errors import LimitExceeded, UnreadableFile, UnsupportedFile
from app.ingest.kind import Kind, detect
from app.ingest.parse import parse
from app.ingest.parse.process import parse_isolated

SIZE = (1200, 420)
TEXT = "The laboratory keeps its records for seven years."
KINDS = [("PNG", Kind.PNG), ("JPEG", Kind.JPEG), ("TIFF", Kind.TIFF), ("WEBP", Kind.WEBP), ("BMP", Kind.BMP)]


def picture(text: str = TEXT) -> Image.Image:
    return page(text, size=SIZE, skew=0)[0]


@pytest.mark.parametrize(("format_", "kind"), [*KINDS, ("GIF", Kind.GIF)])
def test_every_kind_is_known_and_read(format_: str, kind: Kind) -> None:
    data = encoded(picture(), format_)
    assert detect(data, "scan.dat") is kind
    extracted = parse(data, "scan.dat")
    assert "laboratory keeps" in extracted.text
    assert extracted.media_type == kind.value


@pytest.mark.parametrize("text", ["BM: an abbreviation\nof two letters", "II* is no picture", "MM\n", "RIFFWEBP"])
def test_text_that_begins_like_a_picture_stays_text(text: str) -> None:
    assert detect(text.encode(), "a.txt") is Kind.TXT


def test_pages_of_a_tiff_are_pages() -> None:
    first, second = picture(), picture("Every visitor signs the journal.")
    extracted = parse(encoded(first, "TIFF", save_all=True, append_images=[second]), "a.tif")
    assert [one.page for one in extracted.pages] == [1, 2]
    texts = [extracted.text[one.char_start : one.char_end] for one in extracted.pages]
    assert "laboratory" in texts[0]
    assert "visitor" in texts[1]
    assert all(one.char_end <= other.char_start for one, other in pairwise(extracted.pages))


def test_only_the_first_picture_of_a_moving_one() -> None:
    data = encoded(picture(), "GIF", save_all=True, append_images=[picture("Every visitor signs the journal.")])
    assert "visitor" not in parse(data, "a.gif").text


def test_a_camera_that_was_held_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned: to be shown rotated by 90 degrees clockwise
    data = encoded(picture().rotate(90, expand=True), "JPEG", exif=exif)
    assert "laboratory keeps" in parse(data, "photo.jpg").text


def test_sixteen_bits_and_see_through_paper() -> None:
    grey = np.asarray(picture(), dtype=np.uint16) * 16  # a scanner of twelve bits
    assert "laboratory keeps" in parse(encoded(Image.fromarray(grey)), "a.png").text
    ink = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    ink.putalpha(picture().point(lambda value: 255 if value < 128 else 0))
    assert "laboratory keeps" in parse(encoded(ink), "a.png").text


@pytest.mark.parametrize("format_", [name for name, _ in KINDS])
def test_a_picture_cut_off_is_damaged(format_: str) -> None:
    data = encoded(picture(), format_)
    for part in (data[: len(data) // 2], data[:40]):
        with pytest.raises((UnreadableFile, UnsupportedFile)):
            parse(part, "a.dat")


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tiff"])
def test_no_bytes_under_the_name_of_a_picture(name: str) -> None:
    with pytest.raises(UnreadableFile):
        parse(b"", name)


@pytest.mark.parametrize("side", [11_000, 60_000])
def test_a_bomb_is_refused_by_its_header(side: int) -> None:
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(bytes(100))), (b"IEND", b"")]
    parts = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    ]
    with pytest.raises(LimitExceeded):
        parse_isolated(b"\x89PNG\r\n\x1a\n" + b"".join(parts), "bomb.png")


def test_a_later_page_of_too_many_pixels() -> None:
    big = Image.new("1", (11_000, 11_000))
    data = encoded(picture().convert("1"), "TIFF", save_all=True, append_images=[big], compression="group4")
    with pytest.raises(LimitExceeded):
        parse_isolated(data, "a.tif")
