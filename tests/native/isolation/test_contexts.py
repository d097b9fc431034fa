"""Contexts that are not destroyed by name: they end with the last of their users."""

from pathlib import Path

import pytest

from gpupool.hardware.simdriver_state import Driver
from tests.native.isolation.cuda_script import CUDA
from tests.native.isolation.idle import counted, held, idle_script
from tests.native.isolation.limited import Container, make_container
from tests.native.simulated import make_node


@pytest.mark.parametrize("first", ["the program", "the green context"])
def test_the_primary_context_ends_with_the_last_green_context(tmp_path: Path, first: str) -> None:
    """A green context retains the primary one. Memory that is allocated in it is the primary's."""
    script = f"""
{CUDA}
ok(lib.cuInit(0))
green, other, context = c_void_p(), c_void_p(), c_void_p()
def retain():
    ok(lib.cuDevicePrimaryCtxRetain(byref(context), 0))
if {first!r} == "the program":
    retain()
for each in green, other:
    ok(lib.cuGreenCtxCreate(byref(each), c_void_p(1), 0, 1))
if {first!r} != "the program":
    retain()
ok(lib.cuCtxFromGreenCtx(byref(context), green))
ok(lib.cuCtxSetCurrent(context))
ok(alloc(100 * MIB)[0])
ok(lib.cuGreenCtxDestroy(green))
ok(lib.cuDevicePrimaryCtxRelease_v2(0))
assert free_mib() == 3226 - 100 - 300
ok(lib.cuGreenCtxDestroy(other))
"""
    node = make_node(tmp_path / "node", driver=Driver(context_mib=300))
    container = make_container(tmp_path, node, context_mib=300)
    with idle_script(container, script):
        assert counted(container) == held(container) == 0


@pytest.mark.parametrize("attached", [0, 1, 2])
def test_a_context_that_is_detached_as_often_as_attached_and_created_ends(
    container: Container, attached: int
) -> None:
    script = f"""
{CUDA}
ok(lib.cuInit(0))
context, same = c_void_p(), c_void_p()
ok(lib.cuCtxCreate_v2(byref(context), 0, 0))
ok(alloc(100 * MIB)[0])
for _ in range({attached}):
    ok(lib.cuCtxAttach(byref(same), 0))
for _ in range({attached}):
    ok(lib.cuCtxDetach(context))
    assert free_mib() == 3126
ok(lib.cuCtxDetach(context))
"""
    with idle_script(container, script):
        assert counted(container) == held(container) == 0
