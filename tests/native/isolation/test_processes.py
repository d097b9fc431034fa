"""All processes of a container together are held to its share, however they start and end."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpupool.hardware.context_memory import NotMeasured, measure_context_mib
from gpupool.hardware.simdriver import inject, read_cards
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_state import Driver
from tests.native.isolation.cuda_script import CUDA
from tests.native.isolation.limited import Container, line, make_container
from tests.native.simulated import CHILD, MIB, V100, compile_c, make_node

APPS = ("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")


def start(container: Container, *command: object) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-I", CHILD, *map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=container.variables(),
    )
    assert child.stdout
    if command[0] == "hold":
        assert child.stdout.readline() == "held\n"
    return child


def end(*children: subprocess.Popen[str]) -> None:
    for child in children:
        child.kill()
        child.communicate()


def used_mib(container: Container) -> int:
    query = ("--query-gpu=memory.used", "--format=csv,noheader,nounits")
    return int(container.run("nvidia-smi", *query).stdout)


def test_eight_racing_processes_fill_the_share_and_never_pass_it(tmp_path: Path) -> None:
    node = make_node(tmp_path / "node", ("NVIDIA H100 80GB HBM3",))
    program = tmp_path / "race"
    compile_c(CHILD.with_name("race.c"), program)
    # Room for three allocations of race.c, and nearly a fourth. The card has room for all.
    container = make_container(tmp_path, node, limits=line(node, 4 * 5200 - 1))
    assert container.run(program).stdout == "0 over, 0 under, 0 failed\n"
    assert used_mib(container) == 0


def test_two_processes_have_one_share(container: Container) -> None:
    first = start(container, "hold", 0, 2000)
    assert container.python(f"{CUDA}\nbegin()\nprint(alloc(1300 * MIB)[0], free_mib())") == (
        "2 1226.0\n"
    )
    end(first)
    assert container.python(f"{CUDA}\nbegin()\nprint(alloc(3226 * MIB)[0])") == "0\n"


def test_only_the_containers_own_processes_are_listed(tmp_path: Path) -> None:
    node = make_node(tmp_path / "node")
    ours = make_container(tmp_path / "ours", node)
    theirs = make_container(tmp_path / "theirs", node)
    first, second = start(ours, "hold", 0, 100), start(theirs, "hold", 0, 200)
    assert ours.run("nvidia-smi", *APPS).stdout == f"{first.pid}, 100\n"
    assert theirs.run("nvidia-smi", *APPS).stdout == f"{second.pid}, 200\n"
    assert (used_mib(ours), used_mib(theirs)) == (100, 200)
    assert read_cards(node)[0].used_bytes == 300 * MIB
    end(first, second)


def test_every_struct_version_of_the_process_list_has_the_same_content(
    container: Container,
) -> None:
    child = start(container, "hold", 0, 100)
    script = """
import ctypes
lib = ctypes.CDLL("libnvidia-ml.so.1")
assert lib.nvmlInit_v2() == 0
card, count = ctypes.c_void_p(), ctypes.c_uint
lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card))
class First(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_uint64)]
class Second(ctypes.Structure):
    _fields_ = [*First._fields_, ("instances", ctypes.c_uint * 2)]
class Detail(ctypes.Structure):
    _fields_ = [*Second._fields_, ("protected", ctypes.c_uint64)]
class Details(ctypes.Structure):
    _fields_ = [("version", count), ("mode", count), ("count", count), ("list", ctypes.c_void_p)]
for what in "Compute", "Graphics", "MPSCompute":
    for suffix, layout in ("", First), ("_v2", Second), ("_v3", Second):
        function = getattr(lib, f"nvmlDeviceGet{what}RunningProcesses{suffix}")
        number, none, found = count(4), count(0), (layout * 4)()
        print(function(card, ctypes.byref(number), found),
              function(card, ctypes.byref(none), None), none.value,
              [(p.pid, p.used >> 20) for p in found[:number.value]])
for mode in 0, 1, 2:
    found = (Detail * 4)()
    details = Details(24 | 1 << 24, mode, 4, ctypes.addressof(found))
    print(lib.nvmlDeviceGetRunningProcessDetailList(card, ctypes.byref(details)),
          [(p.pid, p.used >> 20) for p in found[:details.count]])
"""
    lines = container.python(script).splitlines()
    assert lines[:3] == [f"0 7 1 [({child.pid}, 100)]"] * 3
    assert lines[3:9] == ["0 0 0 []"] * 6
    assert lines[9:] == [f"0 [({child.pid}, 100)]", "0 []", "0 []"]
    end(child)


def test_a_killed_process_gives_back_exactly_what_it_held(container: Container) -> None:
    first, second = start(container, "hold", 0, 1000), start(container, "hold", 0, 2000)
    second.send_signal(signal.SIGKILL)
    second.wait()
    assert used_mib(container) == 1000
    end(first, second)
    assert used_mib(container) == 0


@pytest.mark.slow
def test_a_thousand_killed_processes_leave_no_memory_counted(
    container: Container, tmp_path: Path
) -> None:
    program = tmp_path / "hammer"
    compile_c(Path(__file__).with_name("hammer.c"), program)
    for _ in range(250):
        children = [
            subprocess.Popen(
                [program], stdout=subprocess.PIPE, text=True, env=container.variables()
            )
            for _ in range(4)
        ]
        for child in children:
            assert child.stdout
            assert child.stdout.readline() == "hammering\n"
            child.send_signal(signal.SIGKILL)
        end(*children)
    assert used_mib(container) == 0


def test_a_forked_child_holds_no_memory_and_does_not_keep_its_parents(container: Container) -> None:
    script = f"""
{CUDA}
import time
begin()
alloc(100 * MIB)
if not os.fork():
    print(lib.cuMemAlloc_v2(byref(c_uint64()), c_size_t(MIB)), flush=True)
    os._exit(0)
os.wait()
print(free_mib(), flush=True)
child = os.fork()
if not child:
    os.close(1)
    os.close(2)
    time.sleep(60)
print(alloc(MIB)[0], free_mib(), child, flush=True)
os.kill(os.getpid(), 9)
"""
    done = container.run(sys.executable, "-c", script)
    found = re.fullmatch(r"3\n3126\.0\n0 3125\.0 (\d+)\n", done.stdout)
    assert found, done.stdout + done.stderr
    # The child is alive, and yet the memory of its dead parent is given back.
    assert used_mib(container) == 0
    subprocess.run(["kill", "-9", found[1]], check=True)


def test_exec_gives_back_the_memory_of_the_process(container: Container) -> None:
    script = f"""
{CUDA}
begin()
alloc(100 * MIB)
os.execv(sys.executable, [sys.executable, "-c", {f"{CUDA}begin(); print(free_mib())"!r}])
"""
    assert container.python(script) == "3226.0\n"


def test_contexts_are_counted_with_their_measured_memory(tmp_path: Path) -> None:
    node = make_node(tmp_path / "node", (V100,), Driver(context_mib=312))
    measured = measure_context_mib(node.libraries)
    assert measured == 312
    container = make_container(tmp_path, node, context_mib=measured)
    script = f"""
{CUDA}
begin()
print(free_mib())
other = c_void_p()
ok(lib.cuCtxCreate_v2(byref(other), 0, 0))
print(free_mib())
ok(lib.cuCtxDestroy_v2(other))
ok(lib.cuDevicePrimaryCtxRelease_v2(0))
print(begin() and free_mib())
"""
    assert container.python(script).split() == ["2914.0"] * 3
    assert used_mib(container) == 0
    idle = start(container, "hold", 0, 1)
    assert container.run("nvidia-smi", *APPS).stdout == f"{idle.pid}, 313\n"
    container.set_limits(line(node, 500))
    done = container.run(sys.executable, "-c", f"{CUDA}\nbegin()")
    assert "AssertionError: 2" in done.stderr
    end(idle)


def test_without_a_driver_nothing_is_measured_and_the_reason_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotMeasured, match=r"libcuda\.so\.1: cannot open shared object file"):
        measure_context_mib(tmp_path)


def test_a_card_that_cannot_be_used_does_not_hide_the_contexts_of_the_others(
    tmp_path: Path,
) -> None:
    node = make_node(tmp_path / "node", (V100, V100), Driver(context_mib=312))
    inject(node, 0, parse_fault("xid=48"))
    assert measure_context_mib(node.libraries) == 312
    inject(node, 1, parse_fault("xid=48"))
    with pytest.raises(NotMeasured, match=r"card 0: cuDevicePrimaryCtxRetain failed with CUresult"):
        measure_context_mib(node.libraries)


def test_eight_threads_are_counted_exactly(container: Container) -> None:
    script = f"""
{CUDA}
import threading
context = begin()
def work():
    ok(lib.cuCtxSetCurrent(context))
    for _ in range(300):
        held = [alloc(700)[1] for _ in range(10)]
        for pointer in held:
            ok(free(pointer))
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(free_mib())
"""
    assert container.python(script) == "3226.0\n"
