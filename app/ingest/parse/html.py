"""HTML: what a reader sees, by lines, without a browser and without the network."""

import re
from collections import Counter
from html.parser import HTMLParser

from app.domain.documents import ExtractedText
from app.ingest.parse.build import TextBuilder, clean
from app.ingest.parse.encoding import decode

_SKIPPED = frozenset(
    (
        "script",
        "style",
        "template",
        "noscript",
        "head",
        "iframe",
        "object",
        "svg",
        "canvas",
        "audio",
        "video",
        "datalist",
        "noframes",
    )
)
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
_PARAGRAPHS = frozenset(
    (
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "blockquote",
        "pre",
        "table",
        "ul",
        "ol",
        "dl",
        "section",
        "article",
        "header",
        "footer",
        "nav",
        "main",
        "aside",
        "form",
        "fieldset",
        "figure",
        "figcaption",
        "details",
        "summary",
        "address",
        "hr",
        "caption",
    )
)
_LINES = frozenset(("div", "li", "dt", "dd", "tr", "legend", "option", "thead", "tbody", "tfoot", "center"))
_CELLS = frozenset(("td", "th"))
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# An opening tag ends these open ones, as browsers do.
_IMPLIED_ENDS = {
    "li": ("li",),
    "dt": ("dt", "dd"),
    "dd": ("dt", "dd"),
    "tr": ("td", "th", "tr"),
    "td": ("td", "th"),
    "th": ("td", "th"),
    "option": ("option",),
    "body": ("head",),
}
_SPACE = re.compile(r"[ \t\n\f\r]+")
_HIDING_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_CHARSET = re.compile(
    rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w-]+)|<\?xml[^>]+encoding\s*=\s*[\"']([\w-]+)", re.IGNORECASE
)


def parse_html(data: bytes, media_type: str) -> ExtractedText:
    """Visible text with headings and the page's title."""
    return html_text(decode_html(data), media_type)


def html_text(source: str, media_type: str) -> ExtractedText:
    """The visible text of decoded HTML."""
    reader = _Reader()
    reader.feed(clean(source))
    reader.close()
    return reader.finish(media_type)


def decode_html(data: bytes) -> str:
    """Text of a page: byte order mark, UTF-8 if it is that, else the declared encoding, else the likeliest one."""
    found = _CHARSET.search(data[:4096])
    declared = (found[1] or found[2]).decode("ascii", "replace") if found else None
    if declared and declared.lower().replace("-", "") == "utf8":
        declared = None  # the bytes are tried as UTF-8 anyway; a wrong label must not stop the guess
    return decode(data, declared)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._builder = TextBuilder()
        self._open: list[tuple[str, bool]] = []
        self._counts: Counter[str] = Counter()
        self._hidden = 0
        self._line: list[str] = []
        self._separator = "\n\n"
        self._heading = 0
        self._title: list[str] = []
        self._table_since = 0

    def finish(self, media_type: str) -> ExtractedText:
        self._flush("\n\n")
        return self._builder.finish(media_type, "".join(self._title))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._close_implied(tag)
        self._break_before(tag)
        if tag == "br":
            self._line.append("\n")
        elif tag not in _VOID:
            hides = tag in _SKIPPED or _is_hidden(dict(attrs))
            self._open.append((tag, hides))
            self._counts[tag] += 1
            self._hidden += hides
            if tag == "table" and self._counts["table"] == 1:
                self._table_since = self._builder.length
            if tag in _HEADINGS and not self._hidden:
                self._heading = _HEADINGS[tag]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "br" or not self._counts[tag]:
            return
        self._break_before(tag)
        while self._pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._line.append(data if self._counts["pre"] or self._counts["textarea"] else _SPACE.sub(" ", data))
        elif self._open[-1][0] == "title" and self._counts["head"] and not self._counts["svg"]:
            self._title.append(data)

    def _pop(self) -> str:
        tag, hides = self._open.pop()
        self._counts[tag] -= 1
        self._hidden -= hides
        if tag == "table" and not self._counts["table"]:
            self._flush("\n\n")
            self._builder.mark_table(self._table_since)
        return tag

    def _close_implied(self, tag: str) -> None:
        ends = ("p",) if tag in _PARAGRAPHS or tag in _LINES else ()
        for ended in (*ends, *_IMPLIED_ENDS.get(tag, ())):
            if self._open and self._open[-1][0] == ended:
                self._break_before(ended)
                self._pop()

    def _break_before(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self._flush("\n\n")
        elif tag in _LINES:
            self._flush("\n")
        elif tag in _CELLS and self._line and self._line[-1] != "\t":
            self._line.append("\t")

    def _flush(self, separator: str) -> None:
        text = "".join(self._line)
        self._line.clear()
        if not self._counts["pre"]:
            text = "\n".join(_SPACE_RUN.sub(" ", line).strip(" ") for line in text.split("\n")).strip()
        if text.strip():
            if self._heading:
                self._builder.heading(self._heading, text)
            else:
                self._builder.block(text, separator=self._separator)
            self._separator, self._heading = separator, 0
        elif separator == "\n\n":
            self._separator = separator


_SPACE_RUN = re.compile(r" {2,}")


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    return "hidden" in attributes or bool(_HIDING_STYLE.search(attributes.get("style") or ""))
