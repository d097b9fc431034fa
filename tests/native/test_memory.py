"""Memory is counted exactly, never beyond the card, and given back however a process ends."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles, inject, read_cards
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_state import Driver
from tests.native.driver_script import BEGIN
from tests.native.simulated import (
    CHILD,
    M40,
    MIB,
    V100,
    compile_c,
    environment,
    holding,
    is_able_to_unshare,
    make_node,
    python,
    run,
    start_child,
)

MEMORY_USED = ("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits")


def shown_mib(files: NodeFiles) -> list[int]:
    """The memory in use of each card, as NVML reports it."""
    return [int(line) for line in run(files, *MEMORY_USED).stdout.split()]


def read_mib(files: NodeFiles) -> list[int]:
    """The memory in use of each card, as Python reads it from the state file."""
    return [card.used_bytes // MIB for card in read_cards(files)]


def test_nvml_and_python_report_the_same_memory_in_use(node: NodeFiles) -> None:
    with holding(node, 0, 3226, 1, 100) as child:
        assert shown_mib(node) == read_mib(node) == [3226, 100]
        (process,) = read_cards(node)[0].processes
        assert process.pid == child.pid
        assert Path(process.name).name.startswith("python")


def test_a_killed_process_gives_back_exactly_what_it_held(node: NodeFiles) -> None:
    with holding(node, 0, 1000), holding(node, 0, 2000, 1, 30) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert read_mib(node) == [1000, 0]
        assert shown_mib(node) == [1000, 0]
    assert shown_mib(node) == [0, 0]


def test_memory_of_a_dead_process_can_be_allocated_at_once(node: NodeFiles) -> None:
    with holding(node, 0, 16130) as full:
        full.kill()
        full.wait()
        with holding(node, 0, 16130):
            assert read_mib(node)[0] == 16130


@pytest.mark.parametrize("rounds", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_processes_killed_while_they_allocate_leave_no_memory_in_use(
    node: NodeFiles, rounds: int
) -> None:
    choice = random.Random(7)
    for _ in range(rounds):
        children = [start_child(node, "hammer", index % 2) for index in range(5)]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "hammering\n"
        time.sleep(choice.random() / 20)  # so that each is killed at some other instruction
        for child in children:
            child.kill()
        for child in children:
            child.communicate()
    assert read_mib(node) == [0, 0]
    assert shown_mib(node) == [0, 0]
    with holding(node, 0, 16130, 1, 16130):
        assert read_mib(node) == [16130, 16130]


def test_eight_racing_processes_fill_a_card_and_never_pass_it(
    node: NodeFiles, tmp_path: Path
) -> None:
    program = tmp_path / "race"
    compile_c(Path(__file__).with_name("race.c"), program)
    assert run(node, program).stdout == "0 over, 0 under, 0 failed\n"
    assert read_mib(node) == [0, 0]


def test_an_allocation_succeeds_exactly_if_it_fits(node: NodeFiles) -> None:
    with holding(node, 0, 16000):
        child = start_child(node, "hold", 0, 131)
        assert child.wait() != 0
        child.communicate()
        with holding(node, 0, 130):
            assert read_mib(node)[0] == 16130


def test_memory_used_outside_of_the_simulation_counts(node: NodeFiles) -> None:
    inject(node, 0, parse_fault("memory=16000"))
    assert shown_mib(node) == [16000, 0]
    child = start_child(node, "hold", 0, 200)
    assert child.wait() != 0
    child.communicate()
    inject(node, 0, parse_fault("memory=0"))
    with holding(node, 0, 16130):
        pass


def test_a_context_takes_the_memory_that_the_node_is_configured_with(tmp_path: Path) -> None:
    files = make_node(tmp_path / "node", [V100], Driver(context_mib=307))
    with holding(files, 0, 1):
        assert shown_mib(files) == [308]


@pytest.mark.skipif(not is_able_to_unshare(), reason="this user may not make namespaces")
def test_a_process_in_a_pid_namespace_is_listed_with_the_pid_of_the_reader(node: NodeFiles) -> None:
    unshare = ["/usr/bin/unshare", "-Urpf", "--kill-child", "--mount-proc"]
    with subprocess.Popen(
        [*unshare, sys.executable, "-I", CHILD, "hold", "0", "500"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(node),
    ) as inside:
        assert inside.stdout is not None
        assert inside.stdout.readline() == "held\n"
        (process,) = read_cards(node)[0].processes
        assert process.pid is not None
        assert process.pid != 1
        assert str(CHILD) in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert shown_mib(node) == [500, 0]
        listed = run(node, "nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader")
        assert listed.stdout == f"{process.pid}\n"
        # Another pid namespace cannot see the process, so that it is not listed there.
        query = str(node.programs / "nvidia-smi")
        other = [*unshare, query, "--query-compute-apps=pid", "--format=csv,noheader"]
        done = subprocess.run(other, capture_output=True, text=True, env=environment(node))
        assert (done.returncode, done.stdout) == (0, "")
        ended = os.pidfd_open(process.pid)
        inside.kill()
        select.select([ended], [], [], 20)
        os.close(ended)
    assert shown_mib(node) == [0, 0]


FORK = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(100 << 20)) == 0
ready, tell = os.pipe()
stay, leave = os.pipe()
if os.fork() == 0:
    answers = (cuda.cuInit(0), cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1)))
    os.write(tell, repr(answers).encode())
    os.close(leave)
    os.read(stay, 1)
    os._exit(0)
print(os.read(ready, 100).decode(), flush=True)
sys.stdin.readline()
os.kill(os.getpid(), 9)
"""


def test_a_forked_child_has_no_context_and_does_not_keep_its_parents_memory(
    node: NodeFiles,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(node),
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        assert parent.stdout.readline() == "(3, 3)\n"  # CUDA_ERROR_NOT_INITIALIZED, as the real one
        assert read_mib(node) == [100, 0]
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert parent.wait() == -signal.SIGKILL
        # The child is alive, and yet the memory of its parent is given back.
        assert read_mib(node) == [0, 0]


THREADS = """
import ctypes, threading
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
contexts = []
for card in (0, 1):
    context = ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), card) == 0
    contexts.append(context)
seen = []
barrier = threading.Barrier(2)
def work(card):
    before, device = ctypes.c_void_p(), ctypes.c_int(-1)
    cuda.cuCtxGetCurrent(ctypes.byref(before))
    cuda.cuCtxSetCurrent(contexts[card])
    barrier.wait()
    cuda.cuCtxGetDevice(ctypes.byref(device))
    seen.append((before.value, card, device.value))
for _ in range(60):
    threads = [threading.Thread(target=work, args=(card,)) for card in (0, 1)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
assert all(before is None and card == device for before, card, device in seen), seen
print(len(seen))
"""


def test_every_thread_has_a_context_of_its_own(node: NodeFiles) -> None:
    assert python(node, THREADS) == "120\n"


def test_total_memory_is_the_documented_one(tmp_path: Path) -> None:
    files = make_node(tmp_path / "node", [V100, M40])
    query = run(files, "nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    assert query.stdout == "Tesla V100-SXM2-16GB, 16130 MiB\nTesla M40, 12209 MiB\n"


MODEL = """
import ctypes, random
cuda = ctypes.CDLL("libcuda.so.1")
def ok(result):
    assert result == 0, result
context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
choice, held = random.Random(11), {}
for step in range(4000):
    if not held or (len(held) < 700 and choice.random() < 0.55):
        size, pointer = choice.randint(1, 5000), ctypes.c_uint64()
        ok(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)))
        assert pointer.value not in held
        held[pointer.value] = size
    else:
        pointer = choice.choice(list(held))
        inside, base, size = pointer + held[pointer] - 1, ctypes.c_uint64(), ctypes.c_size_t()
        ok(cuda.cuMemGetAddressRange_v2(
            ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(inside)))
        assert (base.value, size.value) == (pointer, held.pop(pointer))
        ok(cuda.cuMemFree_v2(ctypes.c_uint64(pointer)))
        assert cuda.cuMemFree_v2(ctypes.c_uint64(pointer)) == 1  # not twice
    if step % 50 == 0:
        ok(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        assert total.value - free.value == sum(-(-size // 512) * 512 for size in held.values())
ok(cuda.cuDevicePrimaryCtxRelease_v2(0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
print(total.value - free.value)
"""


def test_thousands_of_random_allocations_match_a_model(node: NodeFiles) -> None:
    assert python(node, MODEL) == "0\n"  # releasing the context freed everything in it


DATA = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def ok(result):
    assert result == 0, result
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
size = 3 * 4096 + 100
ok(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)))
at = lambda offset: ctypes.c_uint64(pointer.value + offset)
back = ctypes.create_string_buffer(size)
ok(cuda.cuMemcpyHtoD_v2(pointer, b"x" * size, ctypes.c_size_t(size)))
ok(cuda.cuMemsetD8_v2(at(10), ctypes.c_ubyte(0), ctypes.c_size_t(size - 20)))
ok(cuda.cuMemsetD32_v2(at(40), ctypes.c_uint(0x41424344), ctypes.c_size_t(2)))
ok(cuda.cuMemcpyDtoH_v2(back, pointer, ctypes.c_size_t(size)))
wanted = b"x" * 10 + bytes(30) + b"DCBADCBA" + bytes(size - 58) + b"x" * 10
assert back.raw == wanted
# Memory that does not belong to the allocation is refused.
assert cuda.cuMemcpyHtoD_v2(at(1), b"x" * size, ctypes.c_size_t(size)) == 1
assert cuda.cuMemcpyDtoH_v2(back, ctypes.c_uint64(4096), ctypes.c_size_t(1)) == 1
print("same")
"""


def test_copies_and_fills_move_real_data(node: NodeFiles) -> None:
    assert python(node, DATA) == "same\n"


def test_memory_of_modules_cannot_be_freed_by_its_address(node: NodeFiles) -> None:
    script = f"""
{BEGIN}
begin()
module, size = made(cuda.cuModuleLoadData, b"any"), c_size_t()
address = made(cuda.cuModuleGetGlobal_v2, byref(size), module, b"variable")
print(cuda.cuMemFree_v2(address), cuda.cuMemsetD8_v2(address, 1, c_size_t(1)))
"""
    assert python(node, script) == "1 0\n"
