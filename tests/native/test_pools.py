"""A pool keeps freed memory until the program synchronises, as the real driver's pools do."""

import pytest

from gpupool.hardware.simdriver import NodeFiles
from tests.native.driver_script import BEGIN
from tests.native.simulated import python

POOL = f"""
{BEGIN}
begin()
stream = made(cuda.cuStreamCreate, 0)
event = made(cuda.cuEventCreate, 0)
pool = made(cuda.cuMemPoolCreate, byref(ON_CARD))
def reserved():
    value = c_uint64()
    ok(cuda.cuMemPoolGetAttribute(pool, 5, byref(value)))
    return value.value // MIB
def take(mib):
    return alloc(mib * MIB, cuda.cuMemAllocFromPoolAsync, pool, stream)
def give(pointer):
    ok(cuda.cuMemFreeAsync(pointer, stream))
def keep(mib):
    ok(cuda.cuMemPoolSetAttribute(pool, 4, byref(c_uint64(mib * MIB))))
def trim(mib):
    ok(cuda.cuMemPoolTrimTo(pool, c_size_t(mib * MIB)))
"""


def printed(node: NodeFiles, script: str) -> list[str]:
    return python(node, POOL + script).split()


@pytest.mark.parametrize(
    "synchronise",
    [
        "cuda.cuStreamSynchronize(stream)",
        "cuda.cuStreamSynchronize(None)",
        "cuda.cuStreamSynchronize_ptsz(stream)",
        "cuda.cuEventRecord(event, stream) or cuda.cuEventSynchronize(event)",
        "cuda.cuCtxSynchronize()",
        "cuda.cuCtxSynchronize_v2(None)",
    ],
)
def test_freed_memory_goes_back_to_the_card_at_a_synchronisation(
    node: NodeFiles, synchronise: str
) -> None:
    script = f"""
give(take(100))
print(reserved(), used_mib())
ok({synchronise})
print(reserved(), used_mib())
"""
    assert printed(node, script) == ["100", "100", "0", "0"]


@pytest.mark.parametrize(
    "call",
    [
        "cuda.cuMemFree_v2(alloc(1))",
        "cuda.cuStreamQuery(stream)",
        "cuda.cuEventQuery(event)",
        "cuda.cuStreamDestroy_v2(stream)",
    ],
)
def test_other_calls_leave_freed_memory_in_the_pool(node: NodeFiles, call: str) -> None:
    assert printed(node, f"give(take(100)); ok({call}); print(used_mib())") == ["100"]


def test_memory_freed_as_plain_memory_stays_in_its_pool_until_a_synchronisation(
    node: NodeFiles,
) -> None:
    script = """
ok(cuda.cuMemFree_v2(take(100)))
print(used_mib())
ok(cuda.cuCtxSynchronize())
print(used_mib())
"""
    assert printed(node, script) == ["100", "0"]


def test_a_pool_keeps_as_much_as_its_release_threshold_says(node: NodeFiles) -> None:
    script = """
keep(30)
first, second = take(100), take(20)
give(first)
ok(cuda.cuCtxSynchronize())
print(reserved(), used_mib())
trim(0)
print(reserved(), used_mib())   # what is in use stays
"""
    assert printed(node, script) == ["30", "30", "20", "20"]


def test_memory_is_not_given_back_while_work_before_its_free_is_running(node: NodeFiles) -> None:
    script = """
other = made(cuda.cuStreamCreate, 0)
pointer = take(100)
launch(kernel("busy_400000us"), stream)
give(pointer)               # returns at once
ok(cuda.cuStreamSynchronize(other))
trim(0)
print(used_mib(), cuda.cuStreamQuery(stream))
ok(cuda.cuStreamSynchronize(stream))
print(used_mib())
"""
    assert printed(node, script) == ["100", "600", "0"]


def test_freed_memory_is_used_again_before_the_card_gives_more(node: NodeFiles) -> None:
    script = """
give(take(100))
give(take(60)); pointer = take(80)
print(used_mib())
bigger = take(50)
print(used_mib())
value = c_uint64()
for attribute in (6, 8):    # the highest reserved, and the highest in use
    ok(cuda.cuMemPoolGetAttribute(pool, attribute, byref(value)))
    print(value.value // MIB)
"""
    assert printed(node, script) == ["100", "130", "130", "130"]


def test_a_destroyed_pool_is_unknown_and_its_memory_is_free_after_the_last_allocation(
    node: NodeFiles,
) -> None:
    script = """
pointer = take(100)
give(take(50))
ok(cuda.cuMemPoolDestroy(pool))
print(used_mib())
print(cuda.cuMemPoolTrimTo(pool, c_size_t(0)), cuda.cuMemPoolDestroy(pool))
give(pointer)
print(used_mib())
"""
    assert printed(node, script) == ["100", "1", "1", "0"]


def test_the_last_context_takes_the_memory_of_its_pools_with_it(node: NodeFiles) -> None:
    script = """
keep(1000)
give(take(100))
left = take(10)
ok(cuda.cuDevicePrimaryCtxRelease_v2(0))
begin()
print(used_mib())
"""
    assert printed(node, script) == ["0"]
