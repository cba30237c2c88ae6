"""Text kinds: encodings, Markdown, HTML, mail. The text is verbatim and every heading points into it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.documents import ExtractedText
from app.errors import EmptyDocument, IngestError, UnreadableFile
from app.ingest.parse import parse


def titles(extracted: ExtractedText) -> list[tuple[int, str]]:
    for heading in extracted.headings:
        assert extracted.text.startswith(heading.title.split()[0], heading.char_start)
    return [(heading.level, heading.title) for heading in extracted.headings]


@pytest.mark.parametrize(
    ("text", "encodings"),
    [
        ("Командировка согласуется заранее.", ("utf-8", "utf-8-sig", "utf-16", "cp1251", "koi8-r", "cp866")),
        ("ПОЛОЖЕНИЕ О КОМАНДИРОВКАХ", ("cp1251", "koi8-r")),
        ("Счёт № 5 от «3 марта», total 100 USD", ("cp1251",)),
        ("出差费用的报销标准由公司规定。", ("utf-8", "gb18030", "utf-16")),
        ("これは出張規程です。", ("cp932", "euc-jp")),
        ("안녕하세요, 한국어 문서입니다", ("cp949",)),
        ("Die Straße führt über die Brücke", ("cp1252", "utf-8")),
        ("كان هناك رجل حكيم", ("cp1256",)),
        ("Plain ASCII", ("ascii", "utf-16-le", "utf-16-be", "utf-32")),
    ],
)
def test_text_in_its_encoding(text: str, encodings: tuple[str, ...]) -> None:
    for encoding in encodings:
        assert parse(text.encode(encoding), "note.txt").text == text, encoding


def test_only_newlines_nul_and_marks_change() -> None:
    source = "\ufeffa\u0301 soft\u00adhyphen\u00a0nbsp\r\nﬁ\rend  \t\n"
    assert parse(source.encode(), "note.txt").text == "a\u0301 soft\u00adhyphen\u00a0nbsp\nﬁ\nend  \t\n"


@pytest.mark.parametrize("data", [b" \r\n\t", b"\xef\xbb\xbf", b"<html><script>x</script></html>"])
def test_nothing_but_blanks_is_empty(data: bytes) -> None:
    with pytest.raises(EmptyDocument):
        parse(data, "note.txt")


def test_broken_marked_encoding_is_unreadable() -> None:
    with pytest.raises(UnreadableFile):
        parse(b"\xff\xfea\x00b", "note.txt")


@given(st.text(min_size=1, max_size=200))
def test_result_is_always_storable(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    try:
        result = parse(data, "note.md").text
    except IngestError:
        return
    assert "\x00" not in result
    result.encode("utf-8")


MARKDOWN = """---
title: ignored
---
# Travel *policy* #

Text with # no heading
and #tag

Hotels
------

```python
# not a heading
```

- item
---
| a | b |
|---|---|

### 3. Details ###
    # code

Long
title
===
"""


def test_markdown_is_its_own_source_with_headings() -> None:
    extracted = parse(MARKDOWN.encode(), "a.md")
    assert extracted.text == MARKDOWN
    assert titles(extracted) == [(1, "Travel *policy*"), (2, "Hotels"), (3, "3. Details"), (1, "Long title")]
    assert extracted.title == "Travel *policy*"


HTML = """<!doctype html><html><head><title>T &amp; x</title><style>a{}</style></head><body>
<div hidden>no</div><p style="display: none">nope<p>First <b>bold</b>
 text<br>line2<script>x<y</script><ul><li>a<li>b</ul><h2>Head  <i>two</i></h2>after
<table><tr><th>A<th>B<tr><td>1<td>2</table><pre>  k
   l</pre><!-- c --><template>t</template><noscript>n</noscript><p>1&nbsp;&lt;&nbsp;2</body></html>"""


def test_html_is_what_a_reader_sees() -> None:
    extracted = parse(HTML.encode(), "page")
    assert extracted.text == (
        "First bold text\nline2\n\na\nb\n\nHead two\n\nafter\n\nA\tB\n1\t2\n\n  k\n   l\n\n1\u00a0<\u00a02"
    )
    assert titles(extracted) == [(2, "Head two")]
    assert extracted.title == "T & x"


def test_html_with_a_wrong_charset_label() -> None:
    page = '<html><meta charset="utf-8"><body>كان هناك رجل حكيم</body></html>'
    assert parse(page.encode("cp1256"), "a.html").text == "كان هناك رجل حكيم"


def test_html_hostile_nesting_is_read() -> None:
    assert parse(b"<html><body>" + b"<div>" * 50_000 + b"deep" + b"</p>" * 50_000, "a").text == "deep"


def test_mail_shows_headers_and_the_plain_body() -> None:
    mail = (
        b"From: =?utf-8?b?0JjQstCw0L0=?= <i@example.org>\nSubject: Trip\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain; charset=koi8-r\n'
        b"Content-Transfer-Encoding: 8bit\n\n"
    ) + "Поездка согласована".encode("koi8-r")
    mail += b"\n--b\nContent-Type: text/plain; name=x.txt\nContent-Disposition: attachment\n\nsecret\n--b--\n"
    extracted = parse(mail, "a.eml")
    assert extracted.text == "From: Иван <i@example.org>\nSubject: Trip\n\nПоездка согласована"
    assert extracted.title == "Trip"
