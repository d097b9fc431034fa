"""Programs that overwrite, remove or replace the file in which their container counts.

They can take from one another what is counted (docs/limits.md says so). They cannot make any
program of the container crash, give a single program more than the limit (but for one launch of a
graph, which passes it in any container), or harm the agent, which reads the file from outside.
"""

import contextlib
import ctypes
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpupool.hardware.limiter_region import BadRegion, Region, read_region
from gpupool.hardware.simdriver import read_cards
from gpupool.hardware.simdriver_state import Driver
from tests.attack.campaign import Campaign, campaign
from tests.native.isolation.limited import Container, line, make_container
from tests.native.isolation.test_random_steps import CHANGING, OUT_OF_MEMORY, TAKING, Program
from tests.native.simulated import MIB, make_node

LIMIT_MIB = 64
CONTEXT_MIB = 3
SIZE = ctypes.sizeof(Region)
LONG = pytest.param(True, id="long", marks=[pytest.mark.attack, pytest.mark.slow])
Damage = Callable[[Path, random.Random], None]


def overwrite(region: Path, draw: random.Random) -> None:
    """Somewhere, with anything; most of all where the numbers are."""
    with region.open("r+b") as file:
        for _ in range(draw.choice((1, 5, 50))):
            file.seek(draw.choice((draw.randrange(SIZE), draw.randrange(min(SIZE, 4096)))))
            file.write(draw.choice((b"\xff" * 8, b"\x7f" * 4, bytes(64), draw.randbytes(16))))


def fill(region: Path, draw: random.Random) -> None:
    with region.open("r+b") as file:
        file.write(draw.choice((b"\xff", b"\x01", b"\x80", b"\0")) * SIZE)


def grow(region: Path, draw: random.Random) -> None:
    with region.open("ab") as file:
        file.write(draw.randbytes(draw.choice((1, 100_000))))


def remove(region: Path, _draw: random.Random) -> None:
    region.unlink()


def replace(region: Path, draw: random.Random) -> None:
    """By something that is no region."""
    region.unlink()
    match draw.randrange(4):
        case 0:
            region.mkdir()
        case 1:
            region.symlink_to(region.parent / "limits")
        case 2:
            region.write_bytes(draw.randbytes(draw.choice((0, 10, SIZE))))
        case _:
            region.symlink_to("/nowhere")


DAMAGES: tuple[Damage, ...] = (overwrite, overwrite, overwrite, fill, grow, remove, replace)


def is_file(region: Path) -> bool:
    return region.is_file() and not region.is_symlink()


def clear(region: Path) -> None:
    if region.is_dir() and not region.is_symlink():
        region.rmdir()
    else:
        region.unlink(missing_ok=True)


@contextlib.contextmanager
def a_container(directory: Path) -> Iterator[Container]:
    node = make_node(directory / "node", driver=Driver(context_mib=CONTEXT_MIB))
    made = make_container(directory, node, context_mib=CONTEXT_MIB)
    made.set_limits(line(node, LIMIT_MIB))
    yield made


def used_by_each(container: Container) -> dict[int | None, int]:
    return {each.pid: each.used_bytes for each in read_cards(container.node)[0].processes}


class Siege:
    """Programs that work, while their region is damaged."""

    def __init__(self, container: Container, attack: Campaign) -> None:
        self.container = container
        self.attack = attack
        self.programs = [Program(container) for _ in range(2)]

    def step(self, draw: random.Random) -> None:
        for program in self.programs:
            for _ in range(5):
                self._work(program, draw)
        if draw.random() < 0.5:
            self._damage(draw)
        if draw.random() < 0.3:
            self.programs.pop(0).kill()
            if draw.random() < 0.5:
                clear(self.container.region)
            self.programs.append(Program(self.container))
        self._look()

    def _work(self, program: Program, draw: random.Random) -> None:
        name = draw.choice((*TAKING, *CHANGING, "info"))
        size = draw.choice((1, MIB, 5 * MIB, 40 * MIB, 70 * MIB))
        before = used_by_each(self.container).get(program.process.pid, 0)
        try:
            result, _ = program.does(name, draw.randrange(10), draw.randrange(10), size)
        except (ValueError, BrokenPipeError):
            self.attack.note(f"{name}: the program ended with {program.process.wait(10)}")
            self.programs[self.programs.index(program)] = Program(self.container)
            return
        after = used_by_each(self.container).get(program.process.pid, 0)
        # What a graph takes is known after its launch; then nothing more is given.
        is_one_launch = name == "launch" and before <= LIMIT_MIB * MIB
        too_much = after > max(before, LIMIT_MIB * MIB) and not is_one_launch
        if too_much and result != OUT_OF_MEMORY:
            self.attack.note(f"{name}: {after >> 20} MiB in one program")

    def _damage(self, draw: random.Random) -> None:
        if is_file(self.container.region):
            draw.choice(DAMAGES)(self.container.region, draw)

    def _look(self) -> None:
        """As the agent does, and as people do."""
        with contextlib.suppress(BadRegion, OSError):
            read_region(self.container.region)
        seen = self.container.run("nvidia-smi")
        if seen.returncode < 0:
            self.attack.note(f"nvidia-smi ended with {seen.returncode}")

    def end(self) -> None:
        for program in self.programs:
            program.kill()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_long", [pytest.param(False, id="short"), LONG])
def test_a_damaged_region_crashes_nobody_and_gives_nobody_more(
    tmp_path: Path, is_long: bool
) -> None:
    attack = campaign("a hostile region", is_long=is_long)
    for step in attack.steps(short=2):
        with a_container(tmp_path / str(step.number)) as container:
            siege = Siege(container, attack)
            try:
                for _ in range(6):
                    siege.step(step.draw)
            except subprocess.TimeoutExpired as error:
                attack.note(f"a program hangs: {error}")
            finally:
                siege.end()
    attack.end()


def test_a_region_that_was_cut_short_ends_programs_and_gives_nobody_more(tmp_path: Path) -> None:
    with a_container(tmp_path) as container:
        old = Program(container)
        assert old.does("retain")[0] == 0
        with container.region.open("r+b") as file:
            file.truncate(0)
        with pytest.raises((ValueError, BrokenPipeError)):
            old.does("alloc", size=MIB)
        assert old.process.wait(10) == -signal.SIGBUS
        new = Program(container)  # makes the region anew
        assert new.does("retain")[0] == 0
        assert new.does("alloc", size=(LIMIT_MIB + 1) * MIB)[0] == OUT_OF_MEMORY
        assert new.does("alloc", size=MIB)[0] == 0
        for program in (old, new):
            program.kill()
