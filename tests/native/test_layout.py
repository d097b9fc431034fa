"""The state file has the same layout in C and in Python."""

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

from gpupool.hardware import simdriver_layout as layout
from native import build
from tests.native.simulated import compile_c

STRUCTS: dict[str, type[ctypes.Structure]] = {
    "card_fixed": layout.CardFixed,
    "card_fault": layout.CardFault,
    "card_live": layout.CardLive,
    "card": layout.Card,
    "slot": layout.Slot,
    "card_event": layout.Event,
    "call_fault": layout.CallFault,
    "limit": layout.Limit,
    "sim_state": layout.State,
}
CONSTANTS = (
    *("SIM_VERSION", "MAX_CARDS", "MAX_SLOTS", "MAX_EVENTS", "MAX_LINKS", "BUCKETS"),
    *("MAX_CALL_FAULTS", "EVERY_CARD", "CALL_HANGS", "ALWAYS", "MAX_LIMITS", "PLACE_BYTES"),
    *("LOCK_INJECT", "LOCK_SLOT", "LOCK_OWNER", "LOCK_LIMITS", "LINK_NONE", "LINK_SWITCH"),
)


def python_side() -> Iterator[str]:
    for name, struct in STRUCTS.items():
        yield f"{name} {ctypes.sizeof(struct)}"
        for field, *_ in struct._fields_:
            place = getattr(struct, field)
            yield f"{name}.{field} {place.offset} {place.size}"
    for name in CONSTANTS:
        yield f"{name} {getattr(layout, name.removeprefix('SIM_'))}"


def c_program() -> Iterator[str]:
    yield '#include <stdio.h>\n#include "layout.h"\nint main(void) {'
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
    compile_c(source, program, "-I", str(build.HERE / "simdriver"))
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == list(python_side())
