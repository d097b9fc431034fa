"""nvidia-smi's private table of NVML: what is not known of it is refused.

The real nvidia-smi with the drivers that are known is in test_clients.py.
"""

from pathlib import Path

import pytest

from tests.native.isolation.limited import PRELOAD, Container, make_container
from tests.native.simulated import compile_c

HERE = Path(__file__).parent
KNOWN = "c4fe3e6cc98f6c4ea327ee696e12f7c4"
OTHER = "00" * 16
NOT_SUPPORTED, NOT_FOUND = 3, 6

# Prints the result, the number of slots, and what the slots return.
SCRIPT = """
import ctypes, sys
nvml = ctypes.CDLL({path!r})
table = ctypes.POINTER(ctypes.c_void_p)()
result = nvml.nvmlInternalGetExportTable(ctypes.byref(table), bytes.fromhex({id!r}))
slots = table[0] // 8 if result == 0 else 0
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
print(result, slots, sorted({{call(table[slot])(None, None, None) for slot in range(1, slots)}}))
"""


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return make_container(tmp_path, way=PRELOAD)


def ask(container: Container, version: str, table: str) -> str:
    nvml = container.node.libraries / "libnvidia-ml.so.1"
    nvml.unlink()
    flags = ("-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", f'-DVERSION="{version}"')
    compile_c(HERE / "newer_nvml.c", nvml, *flags)
    return container.python(SCRIPT.format(path=str(nvml), id=table))


@pytest.mark.parametrize("version", ["570.86.10", "1000.1", "", "what"])
def test_every_function_of_a_newer_driver_is_refused(container: Container, version: str) -> None:
    assert ask(container, version, KNOWN) == f"0 320 [{NOT_SUPPORTED}]\n"


def test_of_a_known_driver_only_the_process_lists_are_replaced(container: Container) -> None:
    # 2: the list of processes refuses a caller without arguments. 0: the lists that are empty.
    assert ask(container, "555.58", KNOWN) == "0 320 [0, 2, 213]\n"


def test_other_private_tables_are_not_given(container: Container) -> None:
    assert ask(container, "550.163", OTHER) == f"{NOT_FOUND} 0 []\n"
