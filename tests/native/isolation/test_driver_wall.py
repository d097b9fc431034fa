"""The limiter beside the driver's own limits: what gets round the one is held by the other, and a
program that gets round neither has its share, not less."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.isolation.limited import (
    BOTH,
    PRELOAD,
    SHARE_MIB,
    STAND_IN,
    WAYS,
    Container,
    make_container,
)
from tests.native.isolation.test_bypass import HELD, HERE, HOLDS, NOTHING, PAST, file_words, tools
from tests.native.walled import TAKES_ALL, Place, container_place, limit, walled_node

__all__ = ["tools"]  # a fixture

CARD_MIB = 16130


def walled(directory: Path, way: str = BOTH, context_mib: int = 0) -> tuple[Container, Place]:
    node = walled_node(directory / "node", context_mib)
    place = container_place(node)
    return make_container(directory, node, way=way, context_mib=context_mib), place


def run(container: Container, place: Place, *words: str | Path) -> str:
    own = {"GPUPOOL_SIM_STATE": str(place.state)}
    done = subprocess.run(
        place.command(*words),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**container.variables(), **own},
    )
    return done.stdout


@pytest.mark.parametrize("loaded", WAYS)
@pytest.mark.parametrize(("way", "file"), HOLDS)
def test_what_gets_round_the_limiter_is_held_by_the_driver(
    tmp_path: Path, tools: Path, way: str, file: str, loaded: str
) -> None:
    container, place = walled(tmp_path, loaded)
    words: list[str | Path] = [tools / "bypass", way, *file_words(container, tools, file)]
    alone = HOLDS[way, file][(BOTH, PRELOAD, STAND_IN).index(loaded)]
    assert run(container, place, *words) == alone
    limit(place, SHARE_MIB, SHARE_MIB)
    assert run(container, place, *words) == (NOTHING if alone == NOTHING else HELD)


def test_a_static_program_is_held_however_the_limiter_is_loaded(tmp_path: Path) -> None:
    program = tmp_path / "static"
    command = ["gcc", "-static", str(HERE / "bypass.c"), "-o", str(program), "-ldl"]
    if (
        not shutil.which("gcc")
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("no compiler here makes static programs with the C library of this machine")
    container, place = walled(tmp_path / "container", PRELOAD)
    assert run(container, place, program, "dlopen") == PAST
    limit(place, SHARE_MIB, SHARE_MIB)
    assert run(container, place, program, "dlopen") == HELD


@pytest.mark.parametrize("spoil", ["remove", "forge"])
def test_a_region_that_is_removed_or_forged_frees_nothing(
    tmp_path: Path, tools: Path, spoil: str
) -> None:
    container, place = walled(tmp_path)
    limit(place, SHARE_MIB, SHARE_MIB)
    # A program that holds all of the share, and one that has removed or emptied the count of it.
    holder = place.start_with(container.variables(), TAKES_ALL + "print(flush=True); input()\n")
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == f"{SHARE_MIB} {SHARE_MIB} {SHARE_MIB}\n"
        if spoil == "remove":
            container.region.unlink()
        else:
            container.region.write_bytes(bytes(container.region.stat().st_size))
        shown = run(container, place, sys.executable, "-c", TAKES_ALL)
        assert shown.split()[-1:] in ([], ["0"])
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize("context_mib", [0, 300])
def test_a_program_under_both_gets_all_of_its_share(tmp_path: Path, context_mib: int) -> None:
    container, place = walled(tmp_path, context_mib=context_mib)
    left = SHARE_MIB - context_mib
    expected = f"{SHARE_MIB} {left} {left}\n"
    assert run(container, place, sys.executable, "-c", TAKES_ALL) == expected
    limit(place, SHARE_MIB, SHARE_MIB)
    assert run(container, place, sys.executable, "-c", TAKES_ALL) == expected


def test_the_limiter_counts_managed_memory_which_the_driver_does_not(tmp_path: Path) -> None:
    container, place = walled(tmp_path)
    limit(place, SHARE_MIB, SHARE_MIB)
    managed = TAKES_ALL.replace("cuMemAlloc_v2(", "cuMemAllocManaged(").replace(
        "<< 20))", "<< 20), 1)"
    )
    assert place.python(managed).split()[2] == str(CARD_MIB)
    shown = run(container, place, sys.executable, "-c", managed)
    assert shown == f"{SHARE_MIB} {SHARE_MIB} {SHARE_MIB}\n"


def test_nvmls_older_call_and_its_process_list_show_the_share_by_the_limiter(
    tmp_path: Path,
) -> None:
    container, place = walled(tmp_path)
    limit(place, SHARE_MIB, SHARE_MIB)
    script = """
import pynvml as n
n.nvmlInit()
card = n.nvmlDeviceGetHandleByIndex(0)
for version in (None, n.nvmlMemory_v2):
    print(n.nvmlDeviceGetMemoryInfo(card, version).total >> 20)
"""
    assert place.python(script) == f"{CARD_MIB}\n{SHARE_MIB}\n"
    assert run(container, place, sys.executable, "-c", script) == f"{SHARE_MIB}\n{SHARE_MIB}\n"
