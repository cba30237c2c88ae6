"""Pages as a scanner gives them: 200 dpi, grey, a little askew, with grain and specks."""

import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

DPI = 200
SOURCES = Path(__file__).parents[2] / "fixtures" / "sources"
_WESTERN = ("/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
_CHINESE = (
    "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
    "/usr/share/fonts-droid-fallback/truetype/DroidSansFallback.ttf",
    "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
)


def source(name: str, chars: int = 1200) -> str:
    """The beginning of a document of the fixture corpus, without its marks."""
    return re.sub(r"[#*|`_>]", "", (SOURCES / name).read_text(encoding="utf-8"))[:chars].rpartition("\n")[0]


def is_chinese(text: str) -> bool:
    return sum("\u4e00" <= char <= "\u9fff" for char in text) > len(text) / 3


def font(chinese: bool, points: float = 11) -> ImageFont.FreeTypeFont:
    paths = [path for path in (_CHINESE if chinese else _WESTERN) if Path(path).is_file()]
    if not paths:
        pytest.skip("no font for the page (Debian: fonts-dejavu-core, fonts-droid-fallback)")
    return ImageFont.truetype(paths[0], round(points * DPI / 72))


def page(text: str, *, size: tuple[int, int] = (1654, 2339), skew: float = 0.7) -> tuple[Image.Image, str]:
    """A page of the text, `size` in pixels, and what is on it, line by line."""
    letters, margin = font(is_chinese(text)), 150
    paper = Image.new("L", size, 255)
    pen = ImageDraw.Draw(paper)
    top, shown = margin, []
    for paragraph in text.split("\n"):
        for line in _broken(paragraph, letters, size[0] - 2 * margin):
            if top > size[1] - margin:
                break
            pen.text((margin, top), line, font=letters, fill=25)
            shown.append(line)
            top += round(letters.size * 1.45)
        top += round(letters.size * 0.5)
    return _scanned(paper, skew), "\n".join(shown)


def _broken(paragraph: str, letters: ImageFont.FreeTypeFont, width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for unit in re.findall(r"[\u2e80-\uffff]|[^\s\u2e80-\uffff]+\s*", paragraph):
        if line and letters.getlength(line + unit.rstrip()) > width:
            lines.append(line)
            line = ""
        line += unit
    return [*lines, line] if line else lines


def _scanned(paper: Image.Image, skew: float) -> Image.Image:
    chance = np.random.default_rng(7)
    turned = paper.rotate(skew, resample=Image.Resampling.BICUBIC, fillcolor=255)
    grey = np.asarray(turned.filter(ImageFilter.GaussianBlur(0.6)), dtype=np.float32) * 0.93 + 10
    grey += chance.normal(0, 18, grey.shape)
    grey[chance.random(grey.shape) < 0.0008] = 0
    return Image.fromarray(grey.clip(0, 255).astype(np.uint8))


def encoded(image: Image.Image, format_: str = "PNG", **options: object) -> bytes:
    out = BytesIO()
    image.save(out, format_, **options)
    return out.getvalue()


def error_rate(truth: str, found: str) -> float:
    """Insertions, deletions and changes for each character of the truth; runs of whitespace count as one space."""
    spaces = "" if is_chinese(truth) else " "
    truth, found = (re.sub(r"\s+", spaces, text).strip() for text in (truth, found))
    row = list(range(len(found) + 1))
    for number, wanted in enumerate(truth, 1):
        above, row[0] = row[0], number
        for place, char in enumerate(found, 1):
            above, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, above + (wanted != char))
    return row[-1] / len(truth)
