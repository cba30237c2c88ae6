"""The model runtime must not call home."""

import subprocess
import sys


def test_the_runtime_is_told_before_it_is_loaded() -> None:
    script = (
        "import os, sys; os.environ.pop('ORT_DISABLE_TELEMETRY', None); import app.analysis.embedder; "
        "assert 'onnxruntime' in sys.modules; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
