"""EML: the headers a reader sees and the body. Attachments are documents of their own, not part of this text."""

from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import Header, decode_header, make_header
from email.message import Message

from app.domain.documents import ExtractedText
from app.ingest.parse.build import TextBuilder, one_line
from app.ingest.parse.encoding import decode
from app.ingest.parse.html import html_text

_SHOWN = ("From", "To", "Cc", "Date", "Subject")


def parse_mail(data: bytes, media_type: str) -> ExtractedText:
    """Headers and body text; the title is the subject. Raises UnreadableFile for a body in no known encoding."""
    # The lenient policy: it reads boundaries and headers that the standard forbids and mailers write.
    message = message_from_bytes(data)
    builder = TextBuilder()
    headers = {name: _header(message[name]) for name in _SHOWN if message[name]}
    builder.block("\n".join(f"{name}: {value}" for name, value in headers.items()))
    builder.block(_body(message))
    return builder.finish(media_type, headers.get("Subject"))


def _header(value: str | Header) -> str:
    try:
        return one_line(str(make_header(decode_header(value))))
    except (HeaderParseError, LookupError, ValueError):
        return one_line(str(value))


def _body(message: Message) -> str:
    texts = [part for part in message.walk() if _is_inline_text(part)]
    plain = [part for part in texts if part.get_content_subtype() == "plain"]
    return "\n\n".join(_text(part) for part in plain[:1] or texts[:1])


def _is_inline_text(part: Message) -> bool:
    shown = part.get_content_type() in ("text/plain", "text/html")
    return shown and part.get_content_disposition() != "attachment" and part.get_filename() is None


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    text = decode(payload if isinstance(payload, bytes) else b"", part.get_content_charset())
    return html_text(text, "text/html").text if part.get_content_subtype() == "html" else text
