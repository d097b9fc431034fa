"""NVML and the reader of the state file give the same look for the same node."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from gpupool.hardware.driver import CardLook, Look, NoDriver, ProgramUse, Uses, Xid
from gpupool.hardware.simdriver import NodeFiles, create_node, inject
from gpupool.hardware.simdriver_cards import card_profile
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_state import NotBuilt, card_uuid
from gpupool.hardware.simulated import SimulatedDriver

V100 = card_profile("Tesla V100-SXM2-16GB", 16130)
M40 = card_profile("Tesla M40", 12209)
H100 = card_profile("NVIDIA H100 80GB HBM3", 81559)

# Looks as often as there are lines, so that errors can be injected in between.
LOOKER = """
import asyncio, sys
from gpupool.hardware import nvml
from gpupool.hardware.driver import *

async def main():
    nvml.RENEW_S = float(sys.argv[1])
    driver = nvml.NvmlDriver()
    for _ in sys.stdin:
        try:
            print(repr(await driver.look()), flush=True)
        except NoDriver as error:
            print(repr(str(error)), flush=True)
    await driver.close()

asyncio.run(main())
"""

# Takes 300 MiB, says what NVML says of all processes, and waits to be told to end.
TAKER = """
import asyncio, ctypes, sys
from gpupool.hardware.nvml import NvmlDriver
cuda, context, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1)
assert not cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(300 << 20))

async def uses():
    driver = NvmlDriver()
    await driver.look()
    return await driver.uses()

print(repr(asyncio.run(uses())), flush=True)
sys.stdin.read()
"""


def node(directory: Path, cards: Iterable[object]) -> NodeFiles:
    try:
        return create_node(directory, "node-1", list(cards))  # type: ignore[arg-type]
    except NotBuilt as error:
        pytest.skip(str(error))


class NvmlLooker:
    """Reads through NVML, in a process that finds the simulated libraries first."""

    def __init__(self, libraries: Path, renew_s: float = 30) -> None:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", LOOKER, str(renew_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def look(self) -> Look | str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        names = {"Look": Look, "CardLook": CardLook, "Xid": Xid}
        found: Look | str = eval(self._process.stdout.readline(), names)
        return replace(found, boot="") if isinstance(found, Look) else found

    def __enter__(self) -> "NvmlLooker":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def direct(driver: SimulatedDriver) -> Look:
    return replace(asyncio.run(driver.look()), boot="")


@pytest.mark.parametrize("cards", [[M40], [V100] * 8, [H100] * 4, [M40, V100, V100], []])
def test_nvml_and_the_state_file_give_the_same_look(tmp_path: Path, cards: list[object]) -> None:
    files = node(tmp_path, cards)
    driver = SimulatedDriver(files.state)
    with NvmlLooker(files.libraries) as nvml:
        assert nvml.look() == direct(driver)


def test_they_agree_about_faults_and_recovery(tmp_path: Path) -> None:
    files = node(tmp_path, [V100] * 3)
    driver = SimulatedDriver(files.state)
    with NvmlLooker(files.libraries) as nvml:
        assert nvml.look() == direct(driver)
        for fault in ("xid=31", "ecc=2", "memory=700", "xid=79", "recover", "lost"):
            inject(files, 1, parse_fault(fault))
            seen = direct(driver)
            assert nvml.look() == seen, fault
    assert seen.cards[1] == CardLook(1, is_lost=True)


def test_they_agree_about_what_programs_hold(tmp_path: Path) -> None:
    files = node(tmp_path, [V100] * 2)
    driver = SimulatedDriver(files.state)
    assert asyncio.run(driver.uses()).programs == ()
    with subprocess.Popen(
        [sys.executable, "-c", TAKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LD_LIBRARY_PATH": str(files.libraries)},
    ) as taker:
        assert taker.stdout
        by_nvml = eval(taker.stdout.readline(), {"ProgramUse": ProgramUse, "Uses": Uses})
        direct = asyncio.run(driver.uses())
        taker.communicate()
    (use,) = direct.programs
    assert direct.read == {card_uuid("node-1", index) for index in range(2)}
    assert (use.pid, use.uuid) == (taker.pid, card_uuid("node-1", 1))
    assert use.used_mib >= 300
    assert by_nvml == direct
    assert asyncio.run(driver.uses()).programs == ()


def test_nvml_is_initialised_again_while_a_card_is_missing(tmp_path: Path) -> None:
    files = node(tmp_path, [M40] * 2)
    driver = SimulatedDriver(files.state)
    with NvmlLooker(files.libraries, renew_s=0) as nvml:
        for fault in ("memory=0", "lost", "memory=300", "recover", "xid=48"):
            inject(files, 0, parse_fault(fault))
            assert nvml.look() == direct(driver), fault


def test_an_xid_is_reported_once_with_its_card(tmp_path: Path) -> None:
    files = node(tmp_path, [M40] * 2)
    driver = SimulatedDriver(files.state)
    direct(driver)
    inject(files, 1, parse_fault("xid=48"))
    assert direct(driver).xids == (Xid(card_uuid("node-1", 1), 48),)
    assert direct(driver).xids == ()


def test_without_a_state_file_there_is_no_driver(tmp_path: Path) -> None:
    driver = SimulatedDriver(tmp_path / "node" / "state")
    with pytest.raises(NoDriver, match="No such file"):
        direct(driver)
    node(tmp_path / "node", [M40])
    assert [card.model for card in direct(driver).cards] == ["Tesla M40"]


def test_a_state_file_that_a_program_cuts_short_ends_nobody(tmp_path: Path) -> None:
    """Access to it, if it were mapped, would be a SIGBUS for the process of all nodes."""
    files = create_node(tmp_path, "n", [V100])
    whole = files.state.read_bytes()
    driver = SimulatedDriver(files.state)
    asyncio.run(driver.look())
    for broken in (b"", whole[:100], b"\0" * len(whole), whole + b"x"):
        files.state.write_bytes(broken)
        with pytest.raises(NoDriver):
            asyncio.run(driver.look())
    files.state.write_bytes(b"\xff" * len(whole))
    with pytest.raises(NoDriver):
        asyncio.run(driver.uses())
    files.state.write_bytes(whole)
    assert len(asyncio.run(driver.look()).cards) == 1
    asyncio.run(driver.close())


def test_a_node_that_is_made_again_has_another_boot_id(tmp_path: Path) -> None:
    files = node(tmp_path, [M40])
    driver = SimulatedDriver(files.state)
    before = asyncio.run(driver.look())
    assert asyncio.run(SimulatedDriver(files.state).look()).boot == before.boot
    node(tmp_path, [V100])
    after = asyncio.run(driver.look())
    assert after.boot != before.boot
    assert [card.model for card in after.cards] == ["Tesla V100-SXM2-16GB"]


def test_without_the_library_there_is_no_driver(tmp_path: Path) -> None:
    with NvmlLooker(tmp_path) as nvml:
        found = nvml.look()
    if isinstance(found, Look):
        pytest.skip("this machine has an NVIDIA driver")
    assert found == "there is no NVIDIA driver: libnvidia-ml.so.1 was not found"
