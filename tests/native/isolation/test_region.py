"""What the limiter counts can be read from outside of the container."""

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.hardware import limiter_region as layout
from gpupool.hardware.limiter_region import BadRegion, read_region
from gpupool.hardware.simdriver import read_cards
from native import build
from tests.native.isolation.limited import Container
from tests.native.simulated import CHILD, MIB, compile_c

STRUCTS: dict[str, type[ctypes.Structure]] = {
    "account": layout.Account,
    "slot": layout.Slot,
    "region_card": layout.RegionCard,
    "region": layout.Region,
}
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


def test_a_container_that_used_nothing_has_nothing_to_read(container: Container) -> None:
    assert read_region(container.region) == ()


def test_what_processes_hold_is_read(container: Container) -> None:
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
def test_another_file_is_not_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "region-1"
    path.write_bytes(content)
    with pytest.raises(BadRegion, match="wanted"):
        read_region(path)
