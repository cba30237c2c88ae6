"""Presentations, spreadsheets, OpenDocument, RTF, EPUB and old Word, through xberg's blocks."""

import xberg

from app.domain.documents import ExtractedText
from app.ingest.parse.build import TextBuilder
from app.ingest.parse.extractor import Node, extract, nodes

_HIDDEN_MARK = " (hidden)"
_WITHOUT_TEXT = frozenset(("group", "list", "slide", "image", "metadata_block", "page_break"))


def parse_office(data: bytes, media_type: str, file_name: str, password: str | None) -> ExtractedText:
    """Blocks in order; slides and sheets are pages; hidden sheets are left out.

    Raises PasswordRequired, LimitExceeded or UnreadableFile.
    """
    document = extract(data, media_type, file_name, password)
    hidden = _hidden_sheets(document)
    builder = TextBuilder()
    page: int | None = None
    blocks = [node for node in nodes(document) if node.node_type not in _WITHOUT_TEXT]
    for node, number in zip(blocks, _page_numbers(blocks), strict=True):
        if number in hidden:
            continue
        if number is not None and number != page:
            builder.open_page(number)
            page = number
        _add(builder, node)
    return builder.finish(media_type, document.metadata.title)


def _page_numbers(blocks: list[Node]) -> list[int | None]:
    """A block without a page (a sheet's heading) belongs to the page of what follows it."""
    numbers: list[int | None] = []
    following: int | None = None
    for node in reversed(blocks):
        following = node.page if node.page is not None else following
        numbers.append(following)
    return numbers[::-1]


def _hidden_sheets(document: xberg.ExtractedDocument) -> frozenset[int]:
    headings = {node.text for node in nodes(document) if node.node_type == "heading"}
    names = {page.page_number: page.sheet_name for page in document.pages or ()}
    return frozenset(
        number
        for number, name in names.items()
        if name and f"{name}{_HIDDEN_MARK}" in headings and name not in headings
    )


def _add(builder: TextBuilder, node: Node) -> None:
    if node.node_type in ("heading", "title"):
        builder.heading(int(node.fields.get("level") or 1), node.text)
    elif node.node_type == "table":
        builder.table(_rows(node))
    elif node.node_type == "list_item":
        builder.block(node.text, separator="\n")
    elif node.node_type == "definition_item":
        builder.block(f"{node.fields['term']}\n{node.fields['definition']}")
    else:
        builder.block(node.text or str(node.fields.get("content") or ""))


def _rows(node: Node) -> str:
    """A table as lines, cells by tabs; rows without content are dropped."""
    rows: dict[int, dict[int, str]] = {}
    for cell in node.fields["grid"]["cells"]:
        if cell["content"].strip():
            rows.setdefault(cell["row"], {})[cell["col"]] = cell["content"].strip().replace("\n", " ")
    lines = []
    for _, cells in sorted(rows.items()):
        first, last = min(cells), max(cells)
        lines.append("\t".join(cells.get(column, "") for column in range(first, last + 1)))
    return "\n".join(lines)
