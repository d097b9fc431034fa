"""The limiter accepts the limit file on the mount that the node made, and no other file.

A pod chooses what else is mounted into its container, and links in images and volumes lead such a
mount to any path. So the path of the limit file says nothing about who wrote it.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.native.isolation.cuda_script import CUDA
from tests.native.isolation.limited import Container, line, make_container
from tests.native.isolation.test_limits_file import EVALUATE, NO_CONTEXT, Session

TOTAL = f"""
{CUDA}
begin()
total = c_size_t()
ok(lib.cuDeviceTotalMem_v2(byref(total), 0))
print(total.value // MIB)
"""
# What a kubelet and its container runtime do: a directory of the node, mounted read-only.
MOUNTED = "mount --bind $VOLUME $PLACE; mount -o remount,bind,ro $PLACE"
FORGED = (
    "mkdir -p $TEST/mine/gpupool; echo unlimited | tee $TEST/mine/limits $TEST/mine/gpupool/limits"
)

# What a pod adds, as the runtime mounts it, and what the limiter says about it.
ATTACKS = {
    "a file over the limit file": (
        f"{MOUNTED}; {FORGED}; mount --bind $TEST/mine/limits $PLACE/limits",
        "something else is mounted over it",
    ),
    "a file over the limit file, by a link": (
        f"{MOUNTED}; {FORGED}; ln -s $PLACE $TEST/x; mount --bind $TEST/mine/limits $TEST/x/limits",
        "something else is mounted over it",
    ),
    "a volume over the directory": (
        f"{MOUNTED}; {FORGED}; mount --bind $TEST/mine $PLACE",
        "something else is mounted over it",
    ),
    "a read-only volume over the directory": (
        f"{MOUNTED}; {FORGED}; mount --bind $TEST/mine $PLACE; mount -o remount,bind,ro $PLACE",
        "something else is mounted over it",
    ),
    "a volume over the directory above": (
        f"{MOUNTED}; {FORGED}; mount --bind $TEST/mine $PLACE/..",
        "it is not on the mount of the limit file",
    ),
    "a mount of a path that is longer than any buffer": (
        f"{MOUNTED}; {FORGED}; d=$TEST/mine/{'x' * 200}/{'y' * 200}/{'z' * 200}/{'w' * 200}; "
        "mkdir -p $d; echo unlimited > $d/limits; mount --bind $d $PLACE",
        "something else is mounted over it",
    ),
    "a volume over the directory above that was there first": (
        f"mkdir -p $TEST/above/gpupool; mount --bind $TEST/above $PLACE/..; {MOUNTED}",
        "it is mounted inside another volume",
    ),
    "a mount below the directory": (
        f"{MOUNTED}; mount --bind $TEST $PLACE/aside",
        "something else is mounted over it",
    ),
    "a mount that can be written": (
        "mount --bind $VOLUME $PLACE",
        "its mount can be written",
    ),
    "no mount": (
        f"{FORGED}; cp $TEST/mine/limits $PLACE",
        "the volume of the limit file is not mounted there",
    ),
    "a mount beside it with a longer name": (
        f"{FORGED}; cp $TEST/mine/limits $PLACE; "
        "mkdir ${PLACE}s; mount --bind $VOLUME ${PLACE}s",
        "the volume of the limit file is not mounted there",
    ),
    "other settings beside the library": (
        f"{MOUNTED}; {FORGED}; "
        "printf 'limits=%s\\nlimits_mount=\\n' $TEST/mine/limits > $TEST/conf; "
        "mount --bind $TEST/conf $LIMITER/limiter.conf",
        "limiter.conf: something else is mounted over it",
    ),
    "no /proc": (
        f"{MOUNTED}; mount -t tmpfs none /proc",
        "/proc does not say on which mount it is",
    ),
    "a pipe over the limit file": (
        f"{MOUNTED}; mkfifo $TEST/pipe; mount --bind $TEST/pipe $PLACE/limits",
        "something else is mounted over it",
    ),
}


@pytest.fixture
def container(tmp_path: Path) -> Container:
    made = make_container(tmp_path, is_mounted=True)
    assert made.mount
    made.mount.mkdir(parents=True)
    (made.limits.parent / "aside").mkdir()
    return made


def command(container: Container, steps: str, script: str) -> list[str]:
    """Runs the Python script in a mount namespace in which the shell has made these steps."""
    names = {
        "TEST": container.region.parent,
        "VOLUME": container.limits.parent,
        "PLACE": container.mount,
        "LIMITER": container.files.directory,
        "PYTHON": sys.executable,
        "SCRIPT": script,
    }
    own = [f"{key}={value}" for key, value in names.items()]
    # The limiter is for the script alone: its variables are set after the mounts are made.
    limiter = [f"{key}={value}" for key, value in container.variables().items()]
    shell = (
        f"set -e; exec 3>&1 >&2; {steps}; exec >&3 3>&-; "
        'exec $WITHIN env "$@" "$PYTHON" -c "$SCRIPT"'
    )
    return ["env", *own, "unshare", "-Urm", "sh", "-c", shell, "sh", *limiter]


def ended(container: Container, steps: str, script: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(container, steps, script), capture_output=True, text=True, check=False, timeout=60
    )
    if "Operation not permitted" in done.stderr and "unshare" in done.stderr:
        pytest.skip("this machine lets nobody make namespaces")
    return done


@contextmanager
def running(container: Container) -> Iterator[Session]:
    process = subprocess.Popen(
        command(container, MOUNTED, EVALUATE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Session(process)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_limit_file_that_the_node_did_not_mount_allows_no_memory(
    container: Container, name: str
) -> None:
    steps, said = ATTACKS[name]
    done = ended(container, steps, NO_CONTEXT)
    assert done.stdout == "2 0\n", done.stderr
    (line_of_stderr,) = [each for each in done.stderr.splitlines() if each.startswith("gpupool: ")]
    assert said in line_of_stderr
    assert line_of_stderr.endswith("; this container may use no GPU memory")


@pytest.mark.parametrize(
    "steps",
    [
        MOUNTED,
        # A sandbox of the program's own, which has copies of all mounts.
        f"{MOUNTED}; mkdir $TEST/copy; mount --rbind / $TEST/copy; "
        "WITHIN='/usr/sbin/chroot '$TEST/copy",
    ],
    ids=["alone", "copied"],
)
def test_the_limit_file_that_the_node_mounted_is_read(container: Container, steps: str) -> None:
    done = ended(container, steps, TOTAL)
    assert done.stdout == "3226\n", done.stderr


def test_a_share_is_resized_through_the_mount(container: Container) -> None:
    with running(container) as program:
        assert program.ask("alloc(3226 * MIB)[:1]") == [0]
        assert program.ask("alloc(1000 * MIB)[:1]") == [2]
        container.set_limits(line(container.node, 5000))
        assert program.ask("alloc(1000 * MIB)[:1]") == [0]
        container.set_limits("unlimited\n")
        assert program.ask("alloc(9000 * MIB)[:1]") == [0]


def test_a_program_that_runs_follows_no_file_that_takes_the_place_of_the_mount(
    container: Container,
) -> None:
    """Root in a container can rename the directory above a mount, as it can any directory."""
    assert container.mount
    above = container.mount.parent
    with running(container) as program:
        assert program.ask("alloc(1000 * MIB)[:1]") == [0]
        above.rename(above.with_name("moved"))
        container.mount.mkdir(parents=True)
        (container.mount / "limits").write_text("unlimited\n", encoding="ascii")
        assert program.ask("alloc(5000 * MIB)[:1]") == [2]
        assert program.ask("alloc(MIB)[:1]") == [2]
