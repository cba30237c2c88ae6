"""Text to vectors with the bundled multilingual E5: no network, one core, one text at a time."""

import json
import re
from functools import cached_property
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from app.analysis import e5
from app.errors import ConfigurationError

_QUERY, _PASSAGE = "query: ", "passage: "
_SPACES = re.compile(" {2,}")
_SURROGATES = re.compile("[\ud800-\udfff]")
# No piece is longer than 16 characters: what lies beyond could never be among the tokens that are read.
_LONGEST_READ = e5.MAX_TOKENS * 16


class Embedder:
    """Thread-safe. The same text gives the same vector whatever else is embedded: texts never share a batch.

    `name` and `revision` go with every stored vector: only equal pairs may be compared.
    """

    name = e5.NAME
    dimension = e5.DIMENSION
    passage_room = e5.MAX_TOKENS - 6
    """Tokens of a passage that are read, beside the prefix and the two marks around it; the rest is cut off."""

    def __init__(self, model: Path, revision: str) -> None:
        self.revision = revision
        self._model = model

    @classmethod
    def load(cls, directory: Path, *, at_once: bool = True) -> "Embedder":
        """Load the model kept in `directory`; the first call makes it there (0.6 GB of memory, 140 MB of disk).

        Not `at_once`, its files are checked and not opened before they are needed, which takes a second then.

        Errors: EmbedderUnavailable if it has to be made and the weights package is missing; ConfigurationError if the
        files are not as they were made (the message says what to delete).
        """
        model = e5.ensure_e5(directory)
        embedder = cls(model, e5.revision(model))
        if at_once:
            embedder.prepare()
        return embedder

    def prepare(self) -> None:
        """Open what is not open yet. ConfigurationError if this machine cannot run the model."""
        _ = self._session, self._tokenizer, self._table

    @cached_property
    def _session(self) -> onnxruntime.InferenceSession:
        return _open_session(self._model / e5.GRAPH)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer.from_file(str(self._model / e5.TOKENIZER))

    @cached_property
    def _table(self) -> dict[int, str]:
        table = json.loads((self._model / e5.NORMALISATION).read_bytes())
        return {int(code_point): replacement for code_point, replacement in table.items()}

    def query(self, text: str) -> NDArray[np.float32]:
        """Vector of a question: (384,), length 1. ValueError if `text` holds nothing to read.

        Texts over 512 tokens are cut at their end.
        """
        return self._embed(_QUERY, text)

    def passage(self, text: str) -> NDArray[np.float32]:
        """Vector of a piece of a document: (384,), length 1. ValueError if `text` holds nothing to read.

        Only the first `passage_room` tokens are read.
        """
        return self._embed(_PASSAGE, text)

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` alone, without prefix and marks, however long it is."""
        return len(self.token_spans(text))

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Where each token stands in `text`: (start, end) in code points, in order.

        Exact also where the tokenizer reads other characters than are written: a character read as several belongs to
        every token that reads a part of it (so neighbours can overlap there), one that is read as nothing belongs to
        none. The mark that opens a text is a token of its own in a few cases, then of length 0.
        """
        read, origins = self._normalise_with_origins(text)
        if not read:
            return []
        encoding = self._tokenizer.encode(read, add_special_tokens=False)
        return [
            (origins[start], origins[end - 1] + 1) if end > start else (origins[min(start, len(origins) - 1)],) * 2
            for start, end in encoding.offsets
        ]

    def _embed(self, prefix: str, text: str) -> NDArray[np.float32]:
        read = self._normalise(text[: _LONGEST_READ * 4])[:_LONGEST_READ]
        if not read.strip():
            raise ValueError("nothing to embed: the text is empty")
        ids = self._tokenizer.encode(_SPACES.sub(" ", prefix + read)).ids
        if len(ids) > e5.MAX_TOKENS:
            ids = [*ids[: e5.MAX_TOKENS - 1], ids[-1]]
        vector: NDArray[np.float32] = self._session.run(None, {"input_ids": np.array([ids], np.int64)})[0][0]
        return vector

    def _normalise(self, text: str) -> str:
        return _SPACES.sub(" ", _SURROGATES.sub("\ufffd", text).translate(self._table))

    def _normalise_with_origins(self, text: str) -> tuple[str, list[int]]:
        """What the tokenizer reads, and for each character of it the place in `text` that it came from."""
        read: list[str] = []
        origins: list[int] = []
        for place, character in enumerate(_SURROGATES.sub("\ufffd", text)):
            for replacement in self._table.get(ord(character), character):
                if replacement != " " or not read or read[-1] != " ":
                    read.append(replacement)
                    origins.append(place)
        return "".join(read), origins


def _open_session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (RuntimeError, ValueError) as error:
        raise ConfigurationError(f"This machine cannot run the embedding model in {path.parent}.") from error
