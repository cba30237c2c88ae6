"""Text to vectors and terms.

onnxruntime reports its use to its maker unless this is set before it is loaded. Nothing here calls home.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
