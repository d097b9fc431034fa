"""How long contexts live that have several users."""

from gpupool.hardware.simdriver import NodeFiles
from tests.native.driver_script import BEGIN
from tests.native.simulated import python

ACTIVE = """
def is_active():
    flags, active = c_int(), c_int()
    ok(cuda.cuDevicePrimaryCtxGetState(0, byref(flags), byref(active)))
    return active.value
"""


def test_a_reset_of_the_primary_context_does_not_count_as_a_release(node: NodeFiles) -> None:
    script = f"""
{BEGIN}
{ACTIVE}
begin()
context = made(cuda.cuDevicePrimaryCtxRetain, 0)
ok(cuda.cuDevicePrimaryCtxReset_v2(0))
print(is_active(), *(cuda.cuDevicePrimaryCtxRelease_v2(0) for _ in range(3)))
begin()
print(is_active(), cuda.cuDevicePrimaryCtxRelease_v2(0), is_active())
"""
    assert python(node, script) == "0 0 0 201\n1 0 0\n"


def test_a_green_context_retains_the_primary_one(node: NodeFiles) -> None:
    script = f"""
{BEGIN}
{ACTIVE}
ok(cuda.cuInit(0))
green = made(cuda.cuGreenCtxCreate, c_void_p(1), 0, 1)
print(is_active(), made(cuda.cuCtxFromGreenCtx, green).value is not None)
print(cuda.cuGreenCtxDestroy(green), is_active(), cuda.cuGreenCtxDestroy(green))
"""
    assert python(node, script) == "1 True\n0 0 201\n"


def test_a_context_ends_when_it_is_detached_once_more_than_attached(node: NodeFiles) -> None:
    script = f"""
{BEGIN}
begin()
other = made(cuda.cuCtxCreate_v2, 0, 0)
same = made(cuda.cuCtxAttach, 0)
print(same.value == other.value, cuda.cuCtxAttach(byref(same), 1))
print(cuda.cuCtxDetach(other), cuda.cuCtxDetach(other), cuda.cuCtxDetach(other))
"""
    assert python(node, script) == "True 1\n0 0 201\n"
