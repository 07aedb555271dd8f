"""CPUs by name: what `--target cpu:…` and the option `target` of passes take."""

import pytest

from deplo.errors import UsageError
from deplo.machine.cpus import CORES, CPUS, parse_cpu
from deplo.machine.host_cpu import find_target, host_cpu
from deplo.machine.targets import get_cpu, get_gpu, get_target


@pytest.mark.parametrize(
    "text",
    [*CPUS, *CORES, "avx512:znver4", "sse2:znver4", "avx2:znver3:cores=2:l2_bytes=524288"],
)
def test_the_text_of_a_cpu_names_it(text):
    cpu = parse_cpu(text)
    assert parse_cpu(cpu.text) == cpu
    assert get_target(f"cpu:{text}").text == f"cpu:{cpu.text}"


def test_the_host_has_a_text_and_is_what_cpu_means_to_a_driver():
    assert parse_cpu(host_cpu().text) == host_cpu()
    assert get_cpu(find_target("cpu").text) == host_cpu()


@pytest.mark.parametrize(
    ("text", "reason"),
    {
        "": "unknown CPU",
        "vax": "unknown CPU 'vax'; it is vectors",
        "znverfoo": "unknown CPU",
        "znver4 ": "unknown CPU",
        "avx2:foo": "unknown CPU",
        "znver4:avx2": "unknown CPU",
        "cores=2": "unknown CPU",
        "znver4:cores=0": "cores is a number from 1 to 65536, not '0'",
        "znver4:pairs=7": "pairs is a number from 0 to 1, not '7'",
        "znver4:cores=two": "cores is a number from 1 to 65536, not 'two'",
        "znver4:threads=2": "a CPU has no 'threads'; its sizes are l1_bytes, l2_bytes, cores, pairs",
        "znver4:cores=2:cores=3": "gives a size twice",
        "amx:haswell": "haswell has no amx",
        "sse2:neoverse-v2": "neoverse-v2 has no sse2",
    }.items(),
)
def test_nonsense_is_refused_before_llvm_sees_it(text, reason):
    with pytest.raises(UsageError, match=reason):
        get_target(f"cpu:{text}")


def test_a_cpu_is_no_gpu_and_the_reverse():
    with pytest.raises(UsageError, match="target must be a GPU"):
        get_gpu("cpu:znver4")
    with pytest.raises(UsageError, match="target must be a CPU"):
        get_cpu("sm_80")
