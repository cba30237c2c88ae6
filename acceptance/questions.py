"""The questions, fixed beforehand: who asks what, and which answer is the right one."""

import hashlib
from pathlib import Path
from typing import Annotated, Literal

import msgspec

Outcome = Literal["ok", "empty", "denied"]
Filled = Annotated[str, msgspec.Meta(min_length=1)]


class SuiteError(ValueError):
    """A file of the suite cannot be used; the message names the file and the place."""


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One question. `rank` counts returned fragments from 1; `never` must be nowhere in any answer to it."""

    id: Filled
    role: Filled
    query: Filled
    outcome: Outcome
    collection: Filled | None = None
    document: Filled | None = None
    edition: Annotated[int, msgspec.Meta(ge=1)] | None = None
    rank: Annotated[int, msgspec.Meta(ge=1)] = 3
    contains: Filled | None = None
    never: tuple[Filled, ...] = ()

    def arguments(self) -> dict[str, str]:
        """What the caller sends, the same over MCP and REST."""
        return {"query": self.query} | ({"collection": self.collection} if self.collection else {})


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    questions: Annotated[tuple[Question, ...], msgspec.Meta(min_length=1)]


class Suite(msgspec.Struct, frozen=True):
    """The questions and the SHA-256 (hex) of the file they were read from."""

    questions: tuple[Question, ...]
    digest: str


def load_suite(path: Path) -> Suite:
    """Read `questions.toml`. Raises `SuiteError` on anything unknown, missing, doubled or contradictory."""
    try:
        data = path.read_bytes()
        questions = msgspec.toml.decode(data, type=_File).questions
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise SuiteError(f"{path}: {error}") from error
    seen: set[str] = set()
    for question in questions:
        if problem := _contradiction(question, seen):
            raise SuiteError(f"{path}: question {question.id}: {problem}")
        seen.add(question.id)
    return Suite(questions, hashlib.sha256(data).hexdigest())


def _contradiction(question: Question, seen: set[str]) -> str | None:
    if question.id in seen:
        return "this id is used twice"
    answered = question.document is not None and question.contains is not None
    if question.outcome == "ok" and not answered:
        return "outcome ok needs document and contains"
    if question.outcome != "ok" and (question.document or question.contains or question.edition):
        return f"outcome {question.outcome} can have no document, edition or contains"
    return None
