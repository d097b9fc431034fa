"""The limiter counts exactly and never beyond the limit, also when processes are killed."""

import contextlib
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from native import build
from tests.native import sanitizers

HERE = Path(__file__).parent
MACHINE = platform.machine()
CORE = build.HERE / "isolation" / "core"
MIB = (1 << 20) // 512  # in granules


@pytest.fixture(scope="session")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled program counting.c."""
    program = tmp_path_factory.mktemp("counting") / "counting"
    sources = [str(CORE / name) for name in ("accounts.c", "region.c", "slots.c")]
    sources += map(str, (build.HERE / "process").glob("*.c"))
    sources.append(str(HERE / "counting.c"))
    toolchain = sanitizers.find_toolchain() if sanitizers.is_active() else build.zig(MACHINE)
    subprocess.run(
        [
            *(*toolchain.command, *toolchain.flags, f"-I{CORE}"),
            *(*sources, "-o", str(program), "-lpthread", "-ldl"),
        ],
        check=True,
        env={**os.environ, **build.cache_environment()},
    )
    return program


@pytest.fixture
def region(tmp_path: Path) -> Path:
    return tmp_path / "region"


def figures(program: Path, command: str, region: Path, *words: int) -> list[int]:
    done = subprocess.run(
        [program, command, region, *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env={**os.environ, **sanitizers.variables()},
    )
    return [int(word) for word in done.stdout.split()]


@contextmanager
def holding(program: Path, region: Path, how: str, *before: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds 9 granules."""
    child = subprocess.Popen(
        [*before, program, "hold", region, how],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **sanitizers.variables()},
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline()
        yield child
    finally:
        child.kill()
        child.communicate()


def test_eight_racing_processes_fill_the_limit_and_never_pass_it(
    counting: Path, region: Path
) -> None:
    assert figures(counting, "race", region, 8, 2000, 512 * MIB, 3226 * MIB) == [0, 0, 0]


def test_a_process_killed_at_any_instruction_leaves_an_exact_count(
    counting: Path, region: Path
) -> None:
    instructions, wrong = figures(counting, "every-instruction", region)
    assert instructions > 50
    assert wrong == 0


@pytest.mark.slow
def test_a_thousand_killed_processes_leave_no_memory_counted(counting: Path, region: Path) -> None:
    assert figures(counting, "kill-many", region, 3, 1000) == [0, 0]


def test_fifty_killed_processes_leave_no_memory_counted(counting: Path, region: Path) -> None:
    assert figures(counting, "kill-many", region, 2, 50) == [0, 0]


def test_the_memory_of_a_living_process_stays_counted(counting: Path, region: Path) -> None:
    with holding(counting, region, "plainly"):
        assert figures(counting, "look", region) == [9, 1]
    assert figures(counting, "look", region) == [0, 0]


def test_a_process_that_closes_all_descriptors_stays_counted(counting: Path, region: Path) -> None:
    with holding(counting, region, "closes"):
        assert figures(counting, "look", region) == [9, 1]
    assert figures(counting, "look", region) == [0, 0]


def test_a_process_that_called_exec_is_not_counted(counting: Path, region: Path) -> None:
    with holding(counting, region, "execs") as child:
        wait_until_closed(child.pid, region)
        assert figures(counting, "look", region) == [0, 0]


def test_a_process_in_another_pid_namespace_is_counted_until_it_dies(
    counting: Path, region: Path
) -> None:
    namespace = ("unshare", "-Urpf", "--kill-child")
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make namespaces")
    with holding(counting, region, "plainly", *namespace):
        assert figures(counting, "look", region) == [9, 1]
    assert figures(counting, "look", region) == [0, 0]


def test_a_region_of_another_version_is_refused(counting: Path, region: Path) -> None:
    region.write_bytes(b"GPUPLIM\0" + (2).to_bytes(4, "little") + bytes(1000))
    with pytest.raises(subprocess.CalledProcessError):
        figures(counting, "look", region)


def test_a_region_whose_creator_died_is_initialised_again(counting: Path, region: Path) -> None:
    region.write_bytes(bytes(1000))
    assert figures(counting, "look", region) == [0, 0]


def wait_until_closed(pid: int, file: Path) -> None:
    places = Path(f"/proc/{pid}/fd")
    while str(file) in map(_link, places.iterdir()):
        pass


def _link(place: Path) -> str:
    """Empty if it was closed after it had been listed."""
    with contextlib.suppress(FileNotFoundError):
        return os.readlink(place)
    return ""
