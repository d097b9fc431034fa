"""Handles and addresses that became free last are given out first, as the real driver may do."""

import pytest

from gpupool.hardware.simdriver import NodeFiles
from tests.native.driver_script import BEGIN
from tests.native.simulated import python

MAKERS = {
    "stream": ("made(cuda.cuStreamCreate, 0)", "cuda.cuStreamDestroy_v2"),
    "event": ("made(cuda.cuEventCreate, 0)", "cuda.cuEventDestroy_v2"),
    "context": ("made(cuda.cuCtxCreate_v2, 0, 0)", "cuda.cuCtxDestroy_v2"),
    "pool": ("made(cuda.cuMemPoolCreate, byref(ON_CARD))", "cuda.cuMemPoolDestroy"),
    "memory": ("alloc(3 * MIB)", "cuda.cuMemFree_v2"),
    "memory of a pool": ("alloc(MIB, cuda.cuMemAllocAsync, None)", "cuda.cuMemFree_v2"),
    "memory without an address": (
        "made(cuda.cuMemCreate, c_size_t(2 * MIB), byref(ON_CARD), c_uint64(0))",
        "cuda.cuMemRelease",
    ),
}


@pytest.mark.parametrize(("make", "end"), MAKERS.values(), ids=MAKERS)
def test_the_handle_that_became_free_last_is_given_out_first(
    node: NodeFiles, make: str, end: str
) -> None:
    script = f"""
{BEGIN}
begin()
handles = [{make} for _ in range(200)]
assert len(set(handle.value for handle in handles)) == 200
for place in (17, 150, 3):
    ok({end}(handles[place]))
    assert {end}(handles[place]) != OK   # not twice
print([{make}.value for _ in range(3)] == [handles[place].value for place in (3, 150, 17)])
"""
    assert python(node, script) == "True\n"
