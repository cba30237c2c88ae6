"""The protocol as one self-contained page: no script, nothing fetched, every word of a document shown as text."""

import re
from collections.abc import Sequence
from html import escape
from string import Template

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>Acceptance protocol</title>
<style>
@page { size: A4 landscape; margin: 12mm }
* { box-sizing: border-box }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; color: #1d2430 }
h1 { font-size: 1.6rem; margin: 0 0 1rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0 }
dt { color: #5a6473 } dd { margin: 0; overflow-wrap: anywhere }
article { border: 1px solid #d3d9e2; border-left: .4rem solid #2c7a4b; border-radius: .4rem; padding: 1rem;
  margin: 1.2rem 0; break-inside: avoid }
article.fail { border-left-color: #b3261e }
h2 { font-size: 1.05rem; margin: 0 0 .6rem }
dd.fragment { white-space: pre-wrap; background: #f5f7fa; padding: .5rem .7rem; border-radius: .3rem }
dd.ids { font: 12px/1.5 ui-monospace, monospace; white-space: pre-wrap }
.fail dd.verdict { color: #b3261e; font-weight: 600 }
.pass dd.verdict { color: #2c7a4b; font-weight: 600 }
dd.decision { min-height: 3rem; border: 1px dashed #97a1b0; border-radius: .3rem }
.signature { display: grid; grid-template-columns: 2fr 1fr 2fr; gap: 2rem; margin: 3.5rem 0 1rem; break-inside: avoid }
.signature span { border-top: 1px solid #1d2430; padding-top: .3rem; color: #5a6473 }
@media print { body { margin: 0; max-width: none; font-size: 11px } }
</style>
</head>
<body>
<h1>Acceptance protocol</h1>
<dl>
$head
</dl>
$rows
<div class="signature"><span>Name</span><span>Date</span><span>Signature</span></div>
</body>
</html>
""")
_KIND = {
    "fragment": "fragment",
    "verdict": "verdict",
    "decision on the citation": "decision",
    "actual document ids": "ids",
    "chunk ids": "ids",
    "call_id": "ids",
    "corpus version": "ids",
}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def render_html(
    head: Sequence[tuple[str, str]], columns: Sequence[str], rows: Sequence[Sequence[str]], failed: Sequence[bool]
) -> str:
    """The page. `rows` follow `columns`, the first of which is the row's title; `failed` says which rows did."""
    articles = [_article(columns, row, bad) for row, bad in zip(rows, failed, strict=True)]
    lines = "\n".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in head)
    return _PAGE.substitute(head=lines, rows="\n".join(articles))


def _article(columns: Sequence[str], row: Sequence[str], bad: bool) -> str:
    pairs = list(zip(columns, row, strict=True))
    body = "\n".join(
        f'<dt>{_text(name)}</dt><dd class="{_KIND.get(name, "plain")}">{_text(value)}</dd>' for name, value in pairs[1:]
    )
    return f'<article class="{"fail" if bad else "pass"}">\n<h2>{_text(row[0])}</h2>\n<dl>\n{body}\n</dl>\n</article>'


def _text(value: str) -> str:
    # The isolate keeps right-to-left marks in a document from reordering the words around it.
    return f"<bdi>{escape(_CONTROL.sub(chr(0xFFFD), value))}</bdi>" if value else ""
