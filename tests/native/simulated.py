"""Creates simulated nodes for tests, and starts programs on them."""

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpupool.hardware.simdriver import NodeFiles, create_node
from gpupool.hardware.simdriver_cards import PROFILES
from gpupool.hardware.simdriver_state import Driver
from native import build
from tests.native import sanitizers

V100 = "Tesla V100-SXM2-16GB"
M40 = "Tesla M40"
CHILD = Path(__file__).with_name("cuda_child.py")
MIB = 1 << 20


def make_node(
    directory: Path, models: Sequence[str] = (V100, V100), driver: Driver | None = None
) -> NodeFiles:
    return create_node(directory, "node-1", [PROFILES[model] for model in models], driver)


def environment(files: NodeFiles, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    return {
        "PATH": f"{files.programs}:/usr/bin:/bin",
        "LD_LIBRARY_PATH": str(files.libraries),
        "HOME": str(files.directory),
        "LANG": "C.UTF-8",
        **sanitizers.variables(),
        **(extra or {}),
    }


def run(
    files: NodeFiles, *command: str | Path, extra: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program and waits for it. Programs of the node are found by their name."""
    program = files.programs / command[0]
    return subprocess.run(
        [program if program.exists() else command[0], *command[1:]],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(files, extra),
        cwd=files.directory,
    )


def python(files: NodeFiles, script: str, **extra: str) -> str:
    """Runs the script, which must succeed, and returns what it prints."""
    done = run(files, sys.executable, "-c", script, extra=extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start_child(files: NodeFiles, *command: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", CHILD, *map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(files),
    )


@contextlib.contextmanager
def holding(files: NodeFiles, *pairs: int) -> Iterator[subprocess.Popen[str]]:
    """A process that has allocated memory: card, MiB, card, MiB ..."""
    child = start_child(files, "hold", *pairs)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
    finally:
        child.kill()
        child.communicate()


def compile_c(source: Path, program: Path, *flags: str) -> None:
    """Compiles with the compiler that builds the native parts."""
    target = f"{platform.machine()}-linux-gnu.{build.GLIBC}"
    subprocess.run(
        [
            *(sys.executable, "-m", "ziglang", "cc", "-target", target, "-std=gnu11", "-O2"),
            *(*flags, str(source), "-o", str(program), "-ldl"),
        ],
        check=True,
        env={**os.environ, **build.cache_environment()},
    )


def is_able_to_unshare() -> bool:
    """Whether this user may create namespaces."""
    if not os.path.exists("/usr/bin/unshare"):
        return False
    command = ["/usr/bin/unshare", "-Urpf", "--mount-proc", "/bin/true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
