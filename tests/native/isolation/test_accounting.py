"""What is counted is what the driver holds: when pools give memory back, when handles are used
again, when contexts end, and when a share is full."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.isolation.cuda_script import CUDA
from tests.native.isolation.idle import MIB, counted, held, idle_after, idle_script
from tests.native.isolation.limited import Container, line
from tests.native.isolation.test_allocations import GRAPH, POOL, WAYS_TO_ALLOCATE
from tests.native.simulated import compile_c

HERE = Path(__file__).parent
KERNELS = """
def kernel(name="busy_1us"):
    module, function = c_void_p(), c_void_p()
    ok(lib.cuModuleLoadData(byref(module), b"any"))
    ok(lib.cuModuleGetFunction(byref(function), module, name.encode()))
    return function
def graph_of_a_kernel():
    made, node, runnable = c_void_p(), c_void_p(), c_void_p()
    ok(lib.cuGraphCreate(byref(made), 0))
    ok(lib.cuGraphAddKernelNode(byref(node), made, None, c_size_t(0), (c_void_p * 8)(kernel())))
    ok(lib.cuGraphInstantiateWithFlags(byref(runnable), made, c_uint64(0)))
    return runnable
"""


def test_a_graph_runs_when_the_share_is_exactly_full(container: Container) -> None:
    script = f"""
{GRAPH}
{KERNELS}
with_memory, without = graph(226), graph_of_a_kernel()
ok(lib.cuGraphLaunch(with_memory, None))
print(alloc(3000 * MIB)[0], free_mib())
print(*(lib.cuGraphLaunch(each, None) for each in (without, with_memory)))
"""
    assert container.python(script).split() == ["0", "0.0", "0", "0"]


def test_graphs_run_when_the_share_was_made_smaller_than_what_is_in_use(
    container: Container,
) -> None:
    script = f"""
{GRAPH}
{KERNELS}
with_memory, without = graph(1000), graph_of_a_kernel()
ok(lib.cuGraphLaunch(with_memory, None))
ok(alloc(1000 * MIB)[0])
with open(os.environ["LIMITS"] + ".new", "w") as file:
    file.write(os.environ["SMALLER"])
os.replace(file.name, os.environ["LIMITS"])
ok(alloc(3226 * MIB)[0] != OUT_OF_MEMORY)   # before it refuses, the limiter reads the file again
print(alloc(MIB)[0], *(lib.cuGraphLaunch(each, None) for each in (without, with_memory)))
print(graph(1))
"""
    smaller = line(container.node, 500)
    found = container.python(script, LIMITS=str(container.limits), SMALLER=smaller)
    assert found.split() == ["2", "0", "0", "2"]


@pytest.mark.parametrize(
    "synchronise",
    [
        "lib.cuStreamSynchronize(stream)",
        "lib.cuStreamSynchronize_ptsz(stream)",
        "lib.cuEventRecord(event, stream) or lib.cuEventSynchronize(event)",
        "lib.cuCtxSynchronize()",
        "lib.cuCtxSynchronize_v2(None)",
    ],
)
def test_pool_memory_that_was_freed_and_synchronised_is_not_counted_while_the_program_idles(
    container: Container, synchronise: str
) -> None:
    script = f"""
{POOL}
stream, event = c_void_p(), c_void_p()
ok(lib.cuStreamCreate(byref(stream), 0))
ok(lib.cuEventCreate(byref(event), 0))
give(take(100 * MIB)[1])
ok({synchronise})
"""
    with idle_script(container, script):
        assert counted(container) == held(container) == 0


@pytest.mark.parametrize("with_mappings", [0, 1])
def test_memory_stays_counted_when_its_handle_was_used_before(
    container: Container, tmp_path: Path, with_mappings: int
) -> None:
    program = tmp_path / "race"
    compile_c(HERE / "handle_race.c", program, "-pthread")
    with idle_after(container, str(program), "20000", str(with_mappings)) as said:
        assert int(said) == held(container) == counted(container)


def test_unmapping_memory_that_is_not_ours_uncounts_our_own_beside_it(container: Container) -> None:
    """Memory of the host is not counted, and one call unmaps both."""
    script = f"""
{CUDA}
begin()
{WAYS_TO_ALLOCATE["cuMemCreate"]}
size, address, on_host = 64 * MIB, c_uint64(), c_uint64()
_, handle = take(size)
ok(lib.cuMemCreate(byref(on_host), c_size_t(size), byref(Properties(1, 0, 2, 0)), c_uint64(0)))
ok(lib.cuMemAddressReserve(byref(address), c_size_t(2 * size), c_size_t(0), c_uint64(0),
                           c_uint64(0)))
for place, what in (0, on_host.value), (size, handle):
    ok(lib.cuMemMap(c_uint64(address.value + place), c_size_t(size), c_size_t(0), c_uint64(what),
                    c_uint64(0)))
    ok(give(what))
print(free_mib())
ok(lib.cuMemUnmap(c_uint64(address.value), c_size_t(2 * size)))
print(free_mib())
"""
    assert container.python(script).split() == ["3162.0", "3226.0"]


def test_an_address_of_a_pool_whose_context_ended_is_counted_once_when_it_is_used_again(
    container: Container,
) -> None:
    script = f"""
{POOL}
other, old = c_void_p(), []
ok(lib.cuCtxCreate_v2(byref(other), 0, 0))
ok(take(100 * MIB)[0])
ok(lib.cuCtxDestroy_v2(other))
begin()
ok(lib.cuCtxSynchronize())
ok(alloc(100 * MIB)[0])   # at the same address
"""
    with idle_script(container, script):
        assert counted(container) == held(container) == 100 * MIB


@pytest.mark.parametrize("current", ["the ended context", "another one"])
@pytest.mark.parametrize("order", ["end, then destroy", "destroy, then end"])
def test_pool_memory_of_a_context_that_ended_is_not_counted_after_its_pool_is_destroyed(
    container: Container, order: str, current: str
) -> None:
    """The memory of the other context stays."""
    script = f"""
{CUDA}
begin()
{WAYS_TO_ALLOCATE["a pool, freed as plain memory"]}
ok(take(20 * MIB)[0])
other, stream = c_void_p(), c_void_p()
ok(lib.cuCtxCreate_v2(byref(other), 0, 0))
ok(lib.cuStreamCreate(byref(stream), 0))
if {current!r} == "another one":
    begin()
ok(lib.cuMemAllocFromPoolAsync(byref(c_uint64()), c_size_t(100 * MIB), pool, stream))
steps = [lambda: lib.cuCtxDestroy_v2(other), lambda: lib.cuMemPoolDestroy(pool)]
for step in steps if {order!r} == "end, then destroy" else steps[::-1]:
    ok(step())
"""
    with idle_script(container, script):
        assert counted(container) == held(container) == 20 * MIB


def test_graph_memory_ends_with_the_last_context(container: Container) -> None:
    script = f"""
{GRAPH}
ok(lib.cuGraphLaunch(graph(100), None))
ok(lib.cuDevicePrimaryCtxReset_v2(0))
"""
    with idle_script(container, script):
        assert counted(container) == held(container) == 0


def test_a_launch_with_a_default_stream_of_its_thread_asks_about_that_stream(
    container: Container,
) -> None:
    """The fault would be used up by a question about the stream of the whole program."""
    container.set_limits(line(container.node, percent=50))
    script = f"""
{CUDA}
begin()
{KERNELS}
ok(lib.cuLaunchKernel_ptsz(kernel(), 1, 1, 1, 1, 1, 1, 0, None, None, None))
print(lib.cuStreamIsCapturing(None, byref(c_int())))
"""
    faults = "cuStreamIsCapturing=906,times=1"
    assert container.python(script, GPUPOOL_SIM_FAULTS=faults) == "906\n"


def test_measuring_launches_does_not_end_the_capture_of_another_thread(
    container: Container,
) -> None:
    """While a thread captures, others must not ask for events unless they relax their mode first.
    The fault is used up by that."""
    container.set_limits(line(container.node, percent=50))
    script = f"""
{CUDA}
begin()
{KERNELS}
function = kernel()
for _ in range(3):
    ok(lib.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None))
print(lib.cuThreadExchangeStreamCaptureMode(byref(c_int(2))))
"""
    faults = "cuThreadExchangeStreamCaptureMode=999,times=1"
    assert container.python(script, GPUPOOL_SIM_FAULTS=faults) == "801\n"


def test_a_card_that_gets_a_line_in_the_limit_file_can_be_used_from_then_on(
    container: Container,
) -> None:
    good = container.limits.read_text(encoding="ascii")
    container.set_limits("")
    script = f"""
{CUDA}
ok(lib.cuInit(0))
context = c_void_p()
print(lib.cuDevicePrimaryCtxRetain(byref(context), 0), flush=True)
sys.stdin.readline()
begin()
print(alloc(MIB)[0], free_mib())
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=container.variables(),
    ) as program:
        assert program.stdout
        assert program.stdout.readline() == "2\n"
        container.set_limits(good)
        assert program.communicate("\n")[0] == "0 3225.0\n"


@pytest.mark.parametrize("current", ["the other card", "none"])
def test_memory_ordered_in_a_stream_is_counted_for_the_card_of_the_stream(
    container: Container, current: str
) -> None:
    container.set_limits(line(container.node, 100) + line(container.node, 200, card=1))
    script = f"""
{CUDA}
stream, pointer = c_void_p(), c_uint64()
begin(1)
ok(lib.cuStreamCreate(byref(stream), 0))
begin(0) if {current!r} != "none" else ok(lib.cuCtxSetCurrent(None))
def take(mib):
    return lib.cuMemAllocAsync(byref(pointer), c_size_t(mib * MIB), stream)
ok(take(150))
assert take(60) == OUT_OF_MEMORY
"""
    with idle_script(container, script, NVIDIA_VISIBLE_DEVICES="0,1"):
        assert [counted(container, card) for card in (0, 1)] == [0, 150 * MIB]
        assert [held(container, card) for card in (0, 1)] == [0, 150 * MIB]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["none", "device", "host"])
def test_a_pool_of_managed_memory_is_counted_wherever_it_is(
    container: Container, place: int
) -> None:
    script = f"""
{CUDA}
{WAYS_TO_ALLOCATE["a pool, freed as plain memory"]}
begin()
ok(lib.cuMemPoolCreate(byref(pool), byref(Properties(2, 0, {place}))))
ok(take(100 * MIB)[0])
assert take(3200 * MIB)[0] == OUT_OF_MEMORY
"""
    with idle_script(container, script):
        assert counted(container) == held(container) == 100 * MIB


def test_a_measurement_ends_with_the_context_of_its_events(container: Container) -> None:
    """The next context has the same handle, and its events may have the handles of the old ones."""
    container.set_limits(line(container.node, percent=50))
    script = f"""
{CUDA}
ok(lib.cuInit(0))
{KERNELS}
def launch_in_a_new_context(own):
    context, events = c_void_p(), [c_void_p() for _ in range(own)]
    ok(lib.cuCtxCreate_v2(byref(context), 0, 0))
    for event in events:
        ok(lib.cuEventCreate(byref(event), 0))
    function = kernel()
    for _ in range(8):
        ok(lib.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None))
    # An event that was never recorded has no time.
    found = [lib.cuEventElapsedTime(byref(ctypes.c_float()), event, event) for event in events]
    ok(lib.cuCtxDestroy_v2(context))
    return found
print(launch_in_a_new_context(0), launch_in_a_new_context(4))
"""
    assert container.python(script) == "[] [400, 400, 400, 400]\n"


def test_graph_memory_is_counted_for_the_card_of_its_node(container: Container) -> None:
    container.set_limits(line(container.node, 100) + line(container.node, 200, card=1))
    script = f"""
{GRAPH}
def allocation(mib):
    return Allocation(1, 0, 1, 1, b"", mib * MIB)
begin(1)
begin(0)
ok(lib.cuGraphLaunch(graph(150), None))
"""
    with idle_script(container, script, NVIDIA_VISIBLE_DEVICES="0,1"):
        assert [counted(container, card) for card in (0, 1)] == [0, 150 * MIB]
        assert [held(container, card) for card in (0, 1)] == [0, 150 * MIB]
