"""Whether this processor can run the bundled pgvector, which is compiled for newer ones only."""

import platform
import re
from pathlib import Path

from app.errors import ConfigurationError

_NEEDED = {
    "x86_64": frozenset({"avx2", "fma", "bmi2", "f16c"}),
    "aarch64": frozenset({"sve"}),
}
_FLAGS = re.compile(r"^(?:flags|Features)\s*:(.*)$", re.MULTILINE)
_CPUINFO = Path("/proc/cpuinfo")


def check_cpu(cpuinfo: str | None = None, *, machine: str | None = None) -> None:
    """Raise ConfigurationError naming the instructions that are missing; without this the server dies of SIGILL.

    `cpuinfo` is the text of /proc/cpuinfo and `machine` the architecture; by default those of this machine. Platforms
    that have no such file, or architectures we know nothing of, pass.
    """
    needed = _NEEDED.get(machine or platform.machine(), frozenset())
    text = cpuinfo if cpuinfo is not None else _this_machine()
    # One line a core; a thread may be moved to any of them, so only what all of them can do counts.
    cores = [frozenset(line.split()) for line in _FLAGS.findall(text)]
    if not cores:
        return
    missing = sorted(needed - frozenset.intersection(*cores))
    if missing:
        raise ConfigurationError(
            f"This processor lacks {', '.join(missing)}, which the bundled vector search needs. "
            "Set STACKS_DATABASE_URL to a Postgres 15 or newer with pgvector 0.8.4 or newer instead."
        )


def _this_machine() -> str:
    return _CPUINFO.read_text(encoding="utf-8", errors="replace") if _CPUINFO.exists() else ""
