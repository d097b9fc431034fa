"""The region: its layout, reading it from outside of the container, and damaged ones."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.hardware import limiter_region as layout
from gpupool.hardware.limiter_region import BadRegion, read_region
from gpupool.hardware.simdriver import read_cards
from gpupool.hardware.simdriver_locks import held
from native import build
from tests.native.isolation.cuda_script import CUDA
from tests.native.isolation.limited import Container
from tests.native.simulated import CHILD, MIB, compile_c

HERE = Path(__file__).parent
LOCK_SLOT = 2 << 40  # as region.h has it
STRUCTS: dict[str, type[ctypes.Structure]] = {
    "account": layout.Account,
    "slot": layout.Slot,
    "region_card": layout.RegionCard,
    "region": layout.Region,
}
# Through NVML's private table, which also has the names of the processes (interface/nvml.h).
LIST_PROCESSES = """
nvml, card, table, count = ctypes.CDLL("libnvidia-ml.so.1"), c_void_p(), c_void_p(), c_uint(600)
ok(nvml.nvmlInit_v2())
ok(nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(card)))
table_id = bytes.fromhex("c4fe3e6cc98f6c4ea327ee696e12f7c4")
ok(nvml.nvmlInternalGetExportTable(byref(table), table_id))
slots = ctypes.cast(table, ctypes.POINTER(c_void_p))
list_processes = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)(slots[213])
found = ctypes.create_string_buffer(600 * 4128)
ok(list_processes(card, byref(count), found))
for start in range(0, count.value * 4128, 4128):
    name = found.raw[start + 32 : start + 4128].partition(bytes(1))[0]
    print(int.from_bytes(found.raw[start : start + 4], "little"), name.hex())
"""
CONSTANTS = ("REGION_VERSION", "MAX_CARDS", "MAX_SLOTS", "GRANULE", "GRANULE_BITS")


def python_side() -> Iterator[str]:
    for name, struct in STRUCTS.items():
        yield f"{name} {ctypes.sizeof(struct)}"
        for field, *_ in struct._fields_:
            place = getattr(struct, field)
            yield f"{name}.{field} {place.offset} {place.size}"
    for name in CONSTANTS:
        yield f"{name} {getattr(layout, name.removeprefix('REGION_'))}"


def c_program() -> Iterator[str]:
    yield '#include <stdio.h>\n#include "accounts.h"\nint main(void) {'
    for name, struct in STRUCTS.items():
        yield f'printf("{name} %zu\\n", sizeof(struct {name}));'
        for field, *_ in struct._fields_:
            member = f"((struct {name} *)0)->{field}"
            offset = f"offsetof(struct {name}, {field})"
            yield f'printf("{name}.{field} %zu %zu\\n", {offset}, sizeof({member}));'
    for name in CONSTANTS:
        yield f'printf("{name} %lld\\n", (long long)({name}));'
    yield "return 0; }"


def test_c_and_python_have_the_same_layout(tmp_path: Path) -> None:
    source, program = tmp_path / "layout.c", tmp_path / "layout"
    source.write_text("\n".join(c_program()), encoding="ascii")
    compile_c(source, program, "-I", str(build.HERE / "isolation" / "core"))
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == list(python_side())


def test_a_container_that_used_no_memory_has_no_region(container: Container) -> None:
    assert read_region(container.region) == ()


def test_the_memory_of_processes_is_read_from_outside(container: Container) -> None:
    child = subprocess.Popen(
        ["python3", "-I", CHILD, "hold", "0", "100"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=container.variables(),
    )
    assert child.stdout
    assert child.stdout.readline() == "held\n"
    (card,) = read_region(container.region)
    assert card.uuid == read_cards(container.node)[0].uuid
    assert card.used_bytes == 100 * MIB
    ((pid, name, used),) = card.processes
    assert (pid, used) == (child.pid, 100 * MIB)
    assert Path(name).name.startswith("python")
    child.kill()
    child.communicate()


@pytest.mark.parametrize("content", [b"", b"x" * 100, bytes(ctypes.sizeof(layout.Region))])
def test_a_file_that_is_no_region_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "region-1"
    path.write_bytes(content)
    with pytest.raises(BadRegion, match="wanted"):
        read_region(path)


@pytest.mark.parametrize("filler", [b"\xff", b"\x01", b"\x7f"])
def test_programs_survive_a_region_that_was_overwritten(
    container: Container, filler: bytes
) -> None:
    """Programs of the container can write to the file. They must not be able to crash others."""
    assert container.python(f"{CUDA}\nbegin()\nprint(alloc(MIB)[0])") == "0\n"
    content = container.region.read_bytes()
    head = layout.Region.card_count.offset
    with container.region.open("r+b") as file:
        file.write(content[:head].ljust(len(content), filler))
    script = f"{CUDA}\n{LIST_PROCESSES}\nbegin()\nalloc(MIB)"
    assert container.run(sys.executable, "-c", script).returncode in (0, 1)
    assert container.run("nvidia-smi").returncode == 0


def test_programs_survive_a_process_name_without_an_end(container: Container) -> None:
    """In the last slot, so that reading on would leave the file."""
    assert container.python(f"{CUDA}\nbegin()\nprint(alloc(MIB)[0])") == "0\n"
    last = layout.MAX_SLOTS - 1
    with container.region.open("r+b") as file:
        region = layout.Region.from_buffer_copy(file.read())
        region.slots_seen = layout.MAX_SLOTS
        ctypes.memset(ctypes.byref(region.slots[last]), 0x7F, ctypes.sizeof(layout.Slot))
        region.slots[last].pid = os.getpid()
        region.slots[last].namespace = os.stat("/proc/self/ns/pid").st_ino
        file.seek(0)
        file.write(bytes(region))
        file.flush()
        with held(file.fileno(), LOCK_SLOT + last):  # so that it counts as alive
            listed = container.run(sys.executable, "-c", f"{CUDA}\n{LIST_PROCESSES}")
    assert (listed.returncode, listed.stdout) == (0, f"{os.getpid()} {'7f' * 95}\n"), listed.stderr


def test_without_locks_of_the_kernel_nothing_is_given_and_a_line_says_so(
    tmp_path: Path, container: Container
) -> None:
    """gVisor has no open-file-description locks. Without them no process can be told from a dead
    one, and nothing can be counted."""
    compile_c(HERE / "no_locks.c", library := tmp_path / "no_locks.so", "-shared", "-fPIC")
    preloaded = f"{library}:{container.variables()['LD_PRELOAD']}"
    script = f"{CUDA}\nok(lib.cuInit(0))\nprint(lib.cuDevicePrimaryCtxRetain(byref(c_void_p()), 0))"
    done = container.run(sys.executable, "-c", script, extra={"LD_PRELOAD": preloaded})
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert done.stderr == (
        f"gpupool: {container.region}: No locks available; this container may use no GPU memory\n"
    )
