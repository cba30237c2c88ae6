"""Judging one question. Each check looks at one promise and names every way in which it was broken."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from acceptance.client import decode
from acceptance.envelope import Envelope, Fragment, Problem, read_envelope
from acceptance.observation import Library, Observation
from acceptance.questions import Question

Faults = Iterator[str]
HTTP_STATUS = {"ok": 200, "empty": 200, "denied": 403}


@dataclass(frozen=True)
class Case:
    """One question, what was seen, and the answer in its published shape."""

    question: Question
    seen: Observation
    library: Library
    envelope: Envelope

    def expected(self) -> Iterator[tuple[int, Fragment]]:
        """The returned fragments of the expected document and edition, with their rank from 1."""
        for rank, fragment in enumerate(self.envelope.results, start=1):
            named = self.library.sources.get(fragment.document_id) == self.question.document
            if named and self.question.edition in (None, fragment.document_version):
                yield rank, fragment


@dataclass(frozen=True)
class Judgement:
    """The verdict: passed when `faults` is empty. `cited` is the fragment a person should compare with its original."""

    question: Question
    faults: tuple[str, ...]
    envelope: Envelope | None
    cited: Fragment | None


def judge(question: Question, seen: Observation, library: Library, call_ids: set[str]) -> Judgement:
    """Hold one question's answers against every promise. Adds its call ids to `call_ids`, which spans the run."""
    silence = tuple(never_said(question, seen))
    try:
        envelope = read_envelope(seen.mcp.structured)
    except msgspec.ValidationError as error:
        shape = seen.mcp.failure or f"structuredContent is not the published envelope: {error}"
        return Judgement(question, (*silence, shape), None, None)
    case = Case(question, seen, library, envelope)
    faults = [fault for check in CHECKS for fault in check(case)]
    faults += fresh_call_ids(case, call_ids)
    return Judgement(question, (*silence, *faults), envelope, _cited(case))


def never_said(question: Question, seen: Observation) -> Faults:
    """No forbidden text anywhere in anything the caller was sent, whatever its case, width or line breaks."""
    everything = [_plain(text) for text in seen.strings()]
    for number, forbidden in enumerate(question.never, start=1):
        if any(_plain(forbidden) in text for text in everything):
            # By number: the protocol is read by people who may not be allowed to see the text itself.
            yield f"forbidden text number {number} appears in the answer"


def outcome(case: Case) -> Faults:
    """The outcome code, what MCP says beside it, and that neither denied nor empty carries fragments."""
    answer, wanted = case.envelope, case.question.outcome
    if case.seen.mcp.failure:
        yield f"the MCP client refused the answer: {case.seen.mcp.failure}"
    if answer.status != wanted:
        yield f"outcome {answer.status}, expected {wanted}"
    if case.seen.mcp.is_error != (answer.status not in ("ok", "empty")):
        yield f"isError is {case.seen.mcp.is_error} with outcome {answer.status}"
    if bool(answer.results) != (answer.status == "ok"):
        yield f"{len(answer.results)} fragments with outcome {answer.status}"
    if answer.details is not msgspec.UNSET and not case.seen.mcp.is_error:
        yield "details in an answer that is no error"


def text_content(case: Case) -> Faults:
    """The text content is the same JSON as structuredContent."""
    if decode(case.seen.mcp.text.encode()) != case.seen.mcp.structured:
        yield "the text content is not the same JSON as structuredContent"


def document(case: Case) -> Faults:
    """The expected document, in the expected edition, within rank, with the expected words in one fragment."""
    if case.question.outcome != "ok":
        return
    found = list(case.expected())
    if not any(rank <= case.question.rank for rank, _ in found):
        yield f"{_wanted(case.question)} is not within the first {case.question.rank} fragments"
    if not any((case.question.contains or "") in fragment.text for _, fragment in found):
        yield f"no fragment of {_wanted(case.question)} contains the expected words"


def editions(case: Case) -> Faults:
    """Editions are named, once each, only of what was asked for, and every fragment is from one of them."""
    answer, asked = case.envelope, case.question.collection
    if bool(answer.corpus_versions) != (answer.status in ("ok", "empty")):
        yield f"{len(answer.corpus_versions)} corpus versions with outcome {answer.status}"
    if len({version.partition("@")[0] for version in answer.corpus_versions}) != len(answer.corpus_versions):
        yield "a collection is named twice in corpus_versions"
    for version in answer.corpus_versions:
        if asked and version.partition("@")[0] != asked:
            yield f"{version} was searched, but only {asked} was asked for"
    for fragment in answer.results:
        if fragment.corpus_version not in answer.corpus_versions:
            yield f"chunk {fragment.chunk_id} is from {fragment.corpus_version}, which corpus_versions does not list"
        if fragment.corpus_version.partition("@")[0] != fragment.collection:
            yield f"chunk {fragment.chunk_id} is from {fragment.corpus_version} but of collection {fragment.collection}"


def order(case: Case) -> Faults:
    """Falling score, and no chunk twice."""
    results = case.envelope.results
    if any(left.score < right.score for left, right in pairwise(results)):
        yield "results are not ordered by falling score"
    if len({fragment.chunk_id for fragment in results}) != len(results):
        yield "a chunk is returned twice"


def verbatim(case: Case) -> Faults:
    """Every fragment is `text[char_start:char_end]`, in code points, of the version served to the same caller."""
    for fragment in case.envelope.results:
        served = case.seen.texts.get(fragment.edition, "not fetched")
        if isinstance(served, str):
            yield f"chunk {fragment.chunk_id}: the text it cites: {served}"
            continue
        if (served.document_id, served.version) != fragment.edition:
            yield f"chunk {fragment.chunk_id}: the text served is of another document or version"
        if not fragment.text or served.text[fragment.char_start : fragment.char_end] != fragment.text:
            yield f"chunk {fragment.chunk_id}: text is not the document's [{fragment.char_start}:{fragment.char_end}]"
        if served.content_sha256 != fragment.content_sha256:
            yield f"chunk {fragment.chunk_id}: content_sha256 differs from that of the text served"


def originals(case: Case) -> Faults:
    """Every fragment names a document of the fixture and carries the SHA-256 of the file it was made from."""
    for fragment in case.envelope.results:
        source = case.library.sources.get(fragment.document_id)
        if source is None:
            yield f"document {fragment.document_id} is not in the owner's listing"
        elif (wanted := case.library.originals.get((source, fragment.document_version))) is None:
            yield f"{source} has no edition {fragment.document_version} in the fixture"
        elif wanted != fragment.content_sha256:
            yield f"content_sha256 is not that of {source}, edition {fragment.document_version}"


def citations(case: Case) -> Faults:
    """The link names the same document, version and place as the fields beside it."""
    for fragment in case.envelope.results:
        place = f"start={fragment.char_start}&end={fragment.char_end}"
        wanted = f"/documents/{fragment.document_id}/versions/{fragment.document_version}?{place}"
        if not re.fullmatch(r"https?://[^/?#\s]+" + re.escape(wanted), fragment.source_uri):
            yield f"chunk {fragment.chunk_id}: source_uri does not point to the fragment"


def rest_agrees(case: Case) -> Faults:
    """REST answers the same question with the same envelope, or the same code, as MCP; only the call id differs."""
    rest, answer = case.seen.rest, case.envelope
    wanted = HTTP_STATUS.get(answer.status)
    if rest.status != wanted:
        yield f"REST answers {rest.status}, MCP {answer.status}"
        return
    try:
        if wanted == 200:
            same = msgspec.structs.replace(read_envelope(rest.value), call_id=answer.call_id) == answer
        else:
            same = msgspec.convert(rest.value, Problem).code == answer.status
    except msgspec.ValidationError as error:
        yield f"REST answers in another shape: {error}"
        return
    if not same:
        yield "REST and MCP answer differently"


def fresh_call_ids(case: Case, call_ids: set[str]) -> Faults:
    """Every call has an id of its own. Adds this case's ids to `call_ids`."""
    rest = case.seen.rest.value
    for call_id in (case.envelope.call_id, rest.get("call_id") if isinstance(rest, dict) else None):
        if not isinstance(call_id, str):
            yield "REST answered without a call_id"
        elif call_id in call_ids:
            yield f"call_id {call_id} was used before"
        else:
            call_ids.add(call_id)


CHECKS: tuple[Callable[[Case], Faults], ...] = (
    outcome,
    text_content,
    document,
    editions,
    order,
    verbatim,
    originals,
    citations,
    rest_agrees,
)


def _cited(case: Case) -> Fragment | None:
    found = [fragment for _, fragment in case.expected()]
    words = case.question.contains or ""
    fallback = found or list(case.envelope.results)
    return next((fragment for fragment in found if words in fragment.text), fallback[0] if fallback else None)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _wanted(question: Question) -> str:
    return f"{question.document}, edition {question.edition}" if question.edition else str(question.document)
