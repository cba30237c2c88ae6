"""The processor check, on the text of /proc/cpuinfo."""

import pytest

from app.db.embedded import check_cpu
from app.errors import ConfigurationError

HASWELL = "processor\t: 0\nflags\t\t: fpu sse2 avx avx2 fma bmi1 bmi2 f16c\n"
SANDY_BRIDGE = "processor\t: 1\nflags\t\t: fpu sse2 avx\n"
GRAVITON = "processor\t: 0\nFeatures\t: fp asimd sve\n"
CORTEX = "processor\t: 0\nFeatures\t: fp asimd\n"


def test_a_fit_processor_passes() -> None:
    check_cpu(HASWELL, machine="x86_64")
    check_cpu(GRAVITON, machine="aarch64")


def test_an_old_processor_is_told_what_it_lacks_and_the_way_out() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_cpu(SANDY_BRIDGE, machine="x86_64")
    assert "avx2, bmi2, f16c, fma" in caught.value.message
    assert "STACKS_DATABASE_URL" in caught.value.message


def test_arm_without_sve_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="sve"):
        check_cpu(CORTEX, machine="aarch64")


def test_one_core_that_lacks_them_is_enough() -> None:
    with pytest.raises(ConfigurationError, match="avx2"):
        check_cpu(HASWELL + SANDY_BRIDGE, machine="x86_64")


def test_a_flag_must_be_a_whole_word() -> None:
    with pytest.raises(ConfigurationError, match="f16c"):
        check_cpu("flags : avx2 fma bmi2 avx512_f16c\n", machine="x86_64")


@pytest.mark.parametrize(("text", "machine"), [("", "x86_64"), (CORTEX, "arm64"), (SANDY_BRIDGE, "riscv64")])
def test_unknown_platforms_pass(text: str, machine: str) -> None:
    check_cpu(text, machine=machine)


def test_this_machine_is_looked_at_by_default() -> None:
    check_cpu(machine="riscv64")
