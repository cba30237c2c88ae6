"""A picture of a page over HTTP: its text is searched, its bytes stay a picture, and what cannot be read is named."""

import pytest
from support.api import Api
from support.scans import encoded, page

from app.ingest.ocr import tesseract


def test_a_picture_is_kept_as_one_and_its_text_is_there(api: Api) -> None:
    data = encoded(page("The laboratory keeps its records for seven years.", size=(1200, 420), skew=0)[0])
    version = f"/documents/{api.add(api.shelf(), 'scan.png', data)}/versions/1"

    assert "laboratory keeps its records" in api("owner", "GET", f"{version}/text").json()["text"]
    original = api("owner", "GET", f"{version}/original")
    assert original.headers["content-type"] == "image/png"
    assert original.content == data


@pytest.mark.skipif(not tesseract.languages(), reason="Tesseract is not installed")
def test_a_page_in_another_script_fails_its_job_by_name(api: Api) -> None:
    words = "Οι κανόνες αυτοί ισχύουν για όλους όσοι εργάζονται στο εργαστήριο. "
    data = encoded(page(words * 6, size=(1654, 700))[0])
    job = api.job(api.upload(api.shelf(), "greek.png", data))

    assert (job["status"], job["code"]) == ("failed", "unsupported_type")
    assert job["message"].startswith("Page 1 is a picture of text")
