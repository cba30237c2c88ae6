"""Office files: what the program would show, with headings and tables; nothing hidden, deleted or fetched."""

import io
import re
import zipfile
from pathlib import Path

import docx
import pytest
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

from app.errors import UnreadableFile
from app.ingest.parse import parse


def saved(document: "docx.document.Document") -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def policy() -> "docx.document.Document":
    document = docx.Document()
    document.add_heading("Travel policy", 0)
    document.add_heading("1. Hotels", 1)
    document.add_paragraph("A hotel *costs* up to 120 EUR_per_night | see #3 & <tags>.")
    document.add_paragraph("first item", style="List Bullet")
    document.add_heading("1.1 Limits", 2)
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(table._cells, ("City", "Limit", "Москва", "150 | x"), strict=True):
        cell.text = text
    document.add_paragraph("После таблицы.\nline two\twith tab")
    return document


def test_docx_text_is_verbatim_with_headings() -> None:
    extracted = parse(saved(policy()), "a.pdf")
    assert extracted.text == (
        "Travel policy\n\n1. Hotels\n\nA hotel *costs* up to 120 EUR_per_night | see #3 & <tags>.\n\nfirst item\n\n"
        "1.1 Limits\n\nCity\tLimit\nМосква\t150 | x\n\nПосле таблицы.\nline two\twith tab"
    )
    assert [(h.level, h.title) for h in extracted.headings] == [
        (1, "Travel policy"),
        (1, "1. Hotels"),
        (2, "1.1 Limits"),
    ]
    for heading in extracted.headings:
        assert extracted.text[heading.char_start :].startswith(heading.title)
    assert extracted.title == "Travel policy"
    assert extracted.pages == ()


def test_docx_leaves_out_what_word_hides() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Shown ")
    paragraph.add_run("hidden ").font.hidden = True
    paragraph.add_run("kept ").font.hidden = False
    deletion = OxmlElement("w:del")
    run = OxmlElement("w:r")
    text = OxmlElement("w:delText")
    text.text = "deleted "
    run.append(text)
    deletion.append(run)
    paragraph._p.append(deletion)
    insertion = OxmlElement("w:ins")
    run = OxmlElement("w:r")
    text = OxmlElement("w:t")
    text.text = "inserted"
    text.set(qn("xml:space"), "preserve")
    run.append(text)
    insertion.append(run)
    paragraph._p.append(insertion)
    assert parse(saved(document), "a.docx").text == "Shown kept inserted"


def rewritten(data: bytes, part: str, pattern: str, replacement: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == part:
                content = re.sub(pattern, replacement, content.decode(), count=1).encode()
            target.writestr(name, content)
    return buffer.getvalue()


def test_docx_external_entity_is_not_opened(tmp_path: Path) -> None:
    (secret := tmp_path / "secret.txt").write_text("TOP SECRET")
    doctype = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]><w:document'
    data = rewritten(saved(docx.Document()), "word/document.xml", "<w:document", doctype)
    data = rewritten(data, "word/document.xml", "<w:body>", "<w:body><w:p><w:r><w:t>a&e;b</w:t></w:r></w:p>")
    assert parse(data, "a.docx").text == "ab"


def test_docx_entity_bomb_is_refused() -> None:
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(12)
    )
    data = rewritten(
        saved(docx.Document()), "word/document.xml", "<w:document", f"<!DOCTYPE x [{entities}]><w:document"
    )
    data = rewritten(data, "word/document.xml", "<w:body>", "<w:body><w:p><w:r><w:t>&m;</w:t></w:r></w:p>")
    with pytest.raises(UnreadableFile):
        parse(data, "a.docx")


def test_docx_damaged_xml_is_unreadable() -> None:
    with pytest.raises(UnreadableFile):
        parse(rewritten(saved(policy()), "word/document.xml", "</w:body>", ""), "a.docx")


ODT_CONTENT = """<?xml version="1.0" encoding="UTF-8"?><office:document-content
xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:text>
<text:h text:outline-level="1">Отпуск</text:h><text:p>Каждый имеет право.</text:p>
<table:table><table:table-row><table:table-cell><text:p>A</text:p></table:table-cell>
<table:table-cell><text:p>B</text:p></table:table-cell></table:table-row></table:table>
</office:text></office:body></office:document-content>"""


def test_odt_by_blocks() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr("content.xml", ODT_CONTENT)
    extracted = parse(buffer.getvalue(), "a.odt")
    assert extracted.text == "Отпуск\n\nКаждый имеет право.\n\nA\tB"
    assert [(h.level, h.title, h.char_start) for h in extracted.headings] == [(1, "Отпуск", 0)]


def test_rtf_without_its_hidden_text() -> None:
    assert parse(b"{\\rtf1\\ansi Hello {\\v hidden} world \\u1087?\\par}", "a.doc").text == "Hello world п"
