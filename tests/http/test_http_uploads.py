"""Uploads of every wrong kind: what the form refuses, and what its job says in the end."""

import pytest
from support.api import Api

HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="z.txt"\r\n\r\nhello\r\n'
FORM = {"content-type": "multipart/form-data; boundary=b"}


@pytest.fixture(scope="module")
def shelf(api: Api) -> str:
    return api.shelf()


@pytest.mark.parametrize(
    ("file_name", "content", "code"),
    [
        ("noise.bin", bytes(range(256)) * 4, "unsupported_type"),
        ("program.txt", b"\x7fELF\x02\x01\x01" + bytes(60), "unsupported_type"),
        ("empty.txt", b"", "empty_document"),
        ("blank.txt", b" \n\n ", "empty_document"),
        ("broken.pdf", b"%PDF-1.7\nnot really", "unreadable"),
    ],
)
def test_a_file_that_cannot_be_read_ends_its_job_with_a_code(
    api: Api, shelf: str, file_name: str, content: bytes, code: str
) -> None:
    job = api.job(api.upload(shelf, file_name, content))

    assert (job["status"], job["code"]) == ("failed", code)
    assert job["message"]
    assert api.documents(shelf)[file_name]["status"] == "failed"


@pytest.mark.parametrize(
    "file_name", ["../../etc/passwd", "/etc/passwd", "a/b.txt", "..\\x.txt", "a\nb.txt", "n" * 300]
)
def test_a_file_name_is_a_name_and_no_path(api: Api, shelf: str, file_name: str) -> None:
    answer = api.upload(shelf, file_name, "x")

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert answer.json()["field"] in ("file", "file_name")


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "a\x00b"},
        {"title": " "},
        {"title": "t" * 301},
        {"title": "t" * 3_000_000},
        {"source_id": "a\x00b"},
        {"source_id": "a\nb"},
        {"labels": "Not A Label"},
        {"labels": "a," * 20 + ",".join("abcdefghijklmnopq")},
        {"tags": "x\x00"},
        {"unknown": "1"},
        {"title": ["one", "two"]},
    ],
    ids=lambda fields: ascii(fields)[:30],
)
def test_a_wrong_field_is_refused(api: Api, shelf: str, fields: dict[str, str]) -> None:
    answer = api.upload(shelf, "a.txt", "x", **fields)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), answer.text
    assert answer.json()["call_id"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--b--\r\n",
        b"no parts at all",
        HEAD,
        HEAD + b'--b\r\nContent-Disposition: form-data; name="file"; filename="y.txt"\r\n\r\ntwo\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nhello\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\nhello\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="\xcf\xf0.txt"\r\n\r\nhello\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a\x00b"\r\n\r\nhello\r\n--b--\r\n',
        HEAD + b'--b\r\nContent-Disposition: form-data; name="title"\r\n\r\n\xff\xfe\r\n--b--\r\n',
        HEAD + b'--b\r\nContent-Disposition: form-data; name="title"; filename="t"\r\n\r\nt\r\n--b--\r\n',
        HEAD + b'--b\r\nContent-Disposition: form-data; name="tags"\r\n\r\nx\r\n' * 2000 + b"--b--\r\n",
    ],
    ids=lambda body: ascii(body)[-40:],
)
def test_a_form_that_is_none_is_refused(api: Api, shelf: str, body: bytes) -> None:
    answer = api("owner", "POST", f"/collections/{shelf}/documents", content=body, headers=FORM)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), answer.text


def test_another_body_than_a_form_is_refused(api: Api, shelf: str) -> None:
    answer = api("owner", "POST", f"/collections/{shelf}/documents", json={"source_uri": "file:///etc/passwd"})

    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_type")


@pytest.mark.parametrize("size", [100_000_001, 102_000_000])
def test_too_large_a_file_is_refused_and_written_down(api: Api, shelf: str, size: int) -> None:
    answer = api.upload(shelf, "large.txt", b"a" * size)

    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")
    row = api("auditor", "GET", f"/calls/{answer.json()['call_id']}").json()
    assert (row["outcome"], row["principal"]) == ("payload_too_large", "owner")


def test_odd_names_do_no_harm(api: Api, shelf: str) -> None:
    for file_name in ('h"><script>.txt', "a;b=c.txt", "кавычки «».txt", "a\u202etxt.exe", "%2e%2e%2fpasswd"):
        receipt = api.upload(shelf, file_name, f"A text about {file_name}.")
        assert api.job(receipt)["status"] == "done"
        assert api.documents(shelf)[file_name]["file_name"] == file_name
