"""A container that was promised a card and has none ends, with words; nothing else does."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.native.isolation.limited import Container
from tests.native.simulated import compile_c

HERE = Path(__file__).parent
WORDS = "node gpu-1, way runtime-class"
# What a container runtime passes on when one of its containers ends by itself.
REFUSED = 78


@pytest.fixture
def first_process(tmp_path: Path, container: Container) -> str:
    """LD_PRELOAD of the first process of a container."""
    compile_c(HERE / "first_process.c", library := tmp_path / "first.so", "-shared", "-fPIC")
    return f"{library}:{container.variables()['LD_PRELOAD']}"


def say(container: Container, check: str, preload: str) -> subprocess.CompletedProcess[str]:
    extra = {"LD_PRELOAD": preload, "GPUPOOL_CARD_CHECK": check}
    return container.run("/bin/echo", "I run", extra=extra)


def test_a_container_without_its_card_ends_before_its_program_with_node_and_way(
    container: Container, first_process: str
) -> None:
    done = say(container, f"/dev/no-card:/dev/neither {WORDS}", first_process)
    assert (done.returncode, done.stdout) == (REFUSED, "")
    assert done.stderr == (
        "gpupool: the card that this container was promised did not get into it: "
        f"{WORDS}; wanted /dev/no-card:/dev/neither, found none. "
        "`gpupool doctor --canary` checks the node\n"
    )


@pytest.mark.parametrize("devices", ["/dev/null", "/dev/no-card:/dev/null", "/dev/null:/dev/no"])
def test_one_of_the_devices_is_enough(
    container: Container, first_process: str, devices: str
) -> None:
    done = say(container, f"{devices} {WORDS}", first_process)
    assert (done.returncode, done.stdout, done.stderr) == (0, "I run\n", "")


def test_a_plain_file_is_no_card(container: Container, first_process: str) -> None:
    done = say(container, f"{container.limits} {WORDS}", first_process)
    assert done.returncode == REFUSED


def test_a_program_that_the_container_starts_is_not_checked(container: Container) -> None:
    """It may have a /dev of its own, as sandboxes inside of containers make one."""
    preload = container.variables()["LD_PRELOAD"]
    done = say(container, f"/dev/no-card {WORDS}", preload)
    assert (done.returncode, done.stdout, done.stderr) == (0, "I run\n", "")


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_sandbox_with_a_pid_namespace_and_a_dev_of_its_own_is_not_checked(
    container: Container, first_process: str, shell: str
) -> None:
    """Its first process looks like the container's, which has passed. bash passes on to programs
    what it was given, not what the C library has."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"NO {shell}: its environment was not tried.")
    extra = {"LD_PRELOAD": first_process, "GPUPOOL_CARD_CHECK": f"/dev/null {WORDS}"}
    # `rest` is what remains of the variable: with it, the device is one that is not there.
    script = "GPUPOOL_CARD_CHECK=${GPUPOOL_CARD_CHECK:+/dev/no-card} /bin/echo I run"
    done = container.run(program, "-c", script, extra=extra)
    assert (done.returncode, done.stdout, done.stderr) == (0, "I run\n", "")


def test_nobody_is_ended_in_a_dev_that_no_container_runtime_has_made(
    container: Container, first_process: str
) -> None:
    """The container's first process may be static, and empties no variable."""
    check = f"/dev/no-card {WORDS}"
    extra = {"LD_PRELOAD": first_process, "GPUPOOL_CARD_CHECK": check, "BARE_DEV": "yes"}
    done = container.run("/bin/echo", "I run", extra=extra)
    assert (done.returncode, done.stdout, done.stderr) == (0, "I run\n", "")


@pytest.mark.parametrize("check", ["", " ", f" {WORDS}", ":", f": {WORDS}", "relative", WORDS])
def test_a_check_that_names_no_device_ends_nobody(
    container: Container, first_process: str, check: str
) -> None:
    done = say(container, check, first_process)
    assert (done.returncode, done.stdout, done.stderr) == (0, "I run\n", "")


@pytest.mark.parametrize("check", ["/dev/" + "x" * 100_000, "/x:" * 30_000, f"/x {'y' * 100_000}"])
def test_an_absurd_check_is_cut_short(container: Container, first_process: str, check: str) -> None:
    done = say(container, check, first_process)
    assert done.returncode == REFUSED
    assert len(done.stderr) < 4096
