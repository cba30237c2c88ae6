"""Every fenced block of README.md and docs/ is run, or parsed, or is of a kind that says nothing to machines."""

import re
from pathlib import Path

import pytest
from docs.blocks import blocks
from docs.commands import ROOT
from docs.desk import Desk
from support.server import ServerProcess

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")
each_page = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])


@pytest.mark.slow
@each_page
def test_the_page_says_what_is_so(page: Path, docs_server: ServerProcess, docs_path: str) -> None:
    desk = Desk(docs_server, docs_path, ROOT / ".cache")
    for block in blocks(page):
        desk.follow(block)


@each_page
def test_its_links_lead_somewhere(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []
