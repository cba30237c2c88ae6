"""RapidOCR: Chinese, English and other Latin print. Its models come with the package; nothing is fetched."""

import math
from functools import cache

import numpy as np
from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException
from PIL import Image
from rapidocr import RapidOCR
from rapidocr.ch_ppocr_det import TextDetOutput
from rapidocr.inference_engine.onnxruntime import ONNXRuntimeError
from rapidocr.utils.output import RapidOCROutput

from app.errors import LimitExceeded
from app.ingest.ocr.lines import Seen, sure_share

# It gives every line a score. What it is certain of is above .95; letters it does not know come at .55 to .85,
# mostly as spaces.
_CERTAIN, _LOST = 0.9, 0.55
_MIN_FILL = 0.25  # visible characters for a length of one line's height
_TALL = 1.5
_ALL = 0.95
_THREADS = "EngineConfig.onnxruntime.{}_op_num_threads"


@cache
def _engine() -> RapidOCR:
    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.text_score": 0.0,
            # It takes single lines for upside down, which whole pages are not.
            "Global.use_cls": False,
            "Rec.rec_batch_num": 1,
            _THREADS.format("intra"): 1,
            _THREADS.format("inter"): 1,
        }
    )


def read(image: Image.Image) -> list[Seen]:
    """The lines of a page in no particular order, those that are not certain with `sure` below 0.6.

    Raises LimitExceeded where memory does not suffice.
    """
    pixels = np.asarray(image.convert("RGB"))[:, :, ::-1]
    try:
        found = _engine()(pixels, use_rec=True)
        lines = _lines(found)
        # It leaves out lines of which it reads nothing but spaces; that they are there matters.
        return lines if lines and sure_share(lines) >= _ALL else lines + _unread(pixels, lines)
    except (ONNXRuntimeError, RuntimeException) as fault:
        raise LimitExceeded from fault


def _lines(found: object) -> list[Seen]:
    if not isinstance(found, RapidOCROutput) or found.boxes is None or found.txts is None or found.scores is None:
        return []
    return [_seen(*one) for one in zip(found.boxes, found.txts, found.scores, strict=True)]


def _unread(pixels: np.ndarray, lines: list[Seen]) -> list[Seen]:
    found = _engine()(pixels, use_rec=False)
    if not isinstance(found, TextDetOutput) or found.boxes is None:
        return []
    places = [_seen(box, "", 0.0) for box in found.boxes]
    return [place for place in places if not any(line.holds(place) for line in lines)]


def stands_on_its_side(lines: list[Seen]) -> bool:
    """Whether most lines are higher than wide."""
    return 2 * sum(line.height > _TALL * line.width for line in lines) > len(lines)


def _seen(box: np.ndarray, text: str, score: float) -> Seen:
    (left, top), (right, bottom) = box.min(axis=0).tolist(), box.max(axis=0).tolist()
    across, down = (box[1] - box[0]).tolist()
    seen = Seen(text, left, top, right, bottom, 0.0, math.atan2(down, across) if across > 0 else 0.0)
    filled = seen.letters >= _MIN_FILL * math.hypot(across, down) / max(1.0, math.dist(box[1], box[2]))
    sure = (float(score) - _LOST) / (_CERTAIN - _LOST) * 0.6 if filled else 0.0
    return Seen(text, left, top, right, bottom, min(1.0, max(0.0, sure)), seen.slope)
