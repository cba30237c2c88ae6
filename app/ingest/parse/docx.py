"""DOCX: the body as Word shows it. Left out: deleted and moved-away text, hidden text, comments, page furniture."""

from dataclasses import dataclass, field

from app.domain.documents import ExtractedText
from app.errors import UnreadableFile
from app.ingest.parse.build import TextBuilder, one_line
from app.ingest.parse.docx_styles import Styles, is_on, read_styles, word_value
from app.ingest.parse.ooxml import Attributes, Package

# What lies in these is not shown, or is shown already by a sibling.
_SKIPPED = frozenset(
    ("del", "moveFrom", "Fallback", "instrText", "delText", "rubyPr", "sdtPr", "pPrChange", "rPrChange")
)
_RUN_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "\u00ad", "ptab": "\t"}
_NOTES = (("footnotes", "footnote"), ("endnotes", "endnote"))


@dataclass(slots=True)
class _Paragraph:
    pieces: list[str] = field(default_factory=list)
    style: str | None = None
    outline: int | None = None


@dataclass(slots=True)
class _Table:
    rows: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    cell: list[str] = field(default_factory=list)


def parse_docx(data: bytes, media_type: str) -> ExtractedText:
    """Paragraphs, headings, table rows (cells by tabs) and notes. Raises UnreadableFile."""
    with Package(data) as package:
        document = package.related("", "officeDocument")
        if document is None:
            raise UnreadableFile
        reader = _Reader(read_styles(package, document))
        package.walk(document, reader.start, reader.end, reader.text)
        for relationship, _ in _NOTES:
            if part := package.related(document, relationship):
                package.walk(part, reader.start, reader.end, reader.text)
        return reader.builder.finish(media_type, reader.title or _core_title(package))


def _core_title(package: Package) -> str:
    part = package.related("", "core-properties")
    inside, found = False, ""

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal inside
        inside = tag.endswith(" title")

    def text(data: str) -> None:
        nonlocal found
        found += data if inside else ""

    def end(tag: str) -> None:
        nonlocal inside
        inside = False

    if part:
        package.walk(part, start, end, text)
    return found


class _Reader:
    """Turns the events of one or more parts into blocks."""

    def __init__(self, styles: Styles) -> None:
        self.builder = TextBuilder()
        self.title = ""
        self._styles = styles
        self._skipping = 0
        self._paragraphs: list[_Paragraph] = []
        self._floating: list[_Paragraph] = []
        self._tables: list[_Table] = []
        self._run: list[str] = []
        self._run_hidden = False
        self._in_run = False
        self._in_text = False

    def start(self, tag: str, attributes: Attributes) -> None:
        name = tag.rpartition(" ")[2]
        if self._skipping or name in _SKIPPED or self._is_separator_note(name, attributes):
            self._skipping += 1
            return
        match name:
            case "p" if _is_word(tag):
                self._paragraphs.append(_Paragraph())
            case "r" if _is_word(tag):
                self._end_run()
                self._in_run = True
            case "t":
                self._in_text = True
            case "tbl":
                self._tables.append(_Table())
            case _:
                self._property(name, attributes)

    def end(self, tag: str) -> None:
        if self._skipping:
            self._skipping -= 1
            return
        match tag.rpartition(" ")[2]:
            case "t":
                self._in_text = False
            case "r":
                self._end_run()
            case "p" if _is_word(tag):
                self._end_paragraph()
            case "tc" if self._tables:
                table = self._tables[-1]
                table.cells.append("\n".join(table.cell))
                table.cell = []
            case "tr" if self._tables:
                table = self._tables[-1]
                table.rows.append("\t".join(table.cells).rstrip())
                table.cells = []
            case "tbl" if self._tables:
                self._end_table()

    def text(self, data: str) -> None:
        if self._in_text and not self._skipping:
            self._run.append(data)

    def _property(self, name: str, attributes: Attributes) -> None:
        if name in _RUN_CHARACTERS:
            if self._in_run:  # a tab stop in a paragraph's properties has the same name
                self._run.append(_RUN_CHARACTERS[name])
        elif name == "vanish":
            self._run_hidden = self._in_run and is_on(attributes)
        elif name == "rStyle":
            self._run_hidden = self._run_hidden or self._styles.is_hidden(word_value(attributes))
        elif self._paragraphs and name == "pStyle":
            self._paragraphs[-1].style = word_value(attributes)
        elif self._paragraphs and name == "outlineLvl" and (level := word_value(attributes)).isdigit():
            self._paragraphs[-1].outline = int(level)

    def _is_separator_note(self, name: str, attributes: Attributes) -> bool:
        return any(name == note for _, note in _NOTES) and bool(word_value(attributes, "type"))

    def _end_run(self) -> None:
        if self._run and self._paragraphs and not self._run_hidden:
            self._paragraphs[-1].pieces.extend(self._run)
        self._run = []
        self._run_hidden = self._in_run = False

    def _end_paragraph(self) -> None:
        self._end_run()
        if not self._paragraphs:
            return
        paragraph = self._paragraphs.pop()
        if self._paragraphs:  # of a text box: after the paragraph that anchors it
            self._floating.append(paragraph)
            return
        for shown in (paragraph, *self._floating):
            self._show(shown)
        self._floating.clear()

    def _show(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.pieces)
        if not text.strip() or self._styles.is_hidden(paragraph.style):
            return
        level = self._level(paragraph)
        if self._tables:
            self._tables[-1].cell.append(text)
        elif level is None:
            self.builder.block(text)
        else:
            if not self.title and self._styles.is_title(paragraph.style):
                self.title = one_line(text)
            self.builder.heading(level, text)

    def _level(self, paragraph: _Paragraph) -> int | None:
        if paragraph.outline is not None:
            return paragraph.outline + 1 if paragraph.outline < 9 else None
        return self._styles.heading_level(paragraph.style)

    def _end_table(self) -> None:
        rows = [row for row in self._tables.pop().rows if row.strip()]
        if self._tables:
            self._tables[-1].cell.extend(rows)
        else:
            self.builder.table("\n".join(rows))


def _is_word(tag: str) -> bool:
    """Whether a tag is of Word's namespace, not of a drawing's or a formula's."""
    namespace = tag.rpartition(" ")[0]
    return "wordprocessingml" in namespace and namespace.endswith("/main")
