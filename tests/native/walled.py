"""Processes under memory limits of the driver: in a real cgroup, or in a container's place."""

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpupool.hardware.memory_limits import MemoryLimits
from gpupool.hardware.simdriver import NodeFiles, link_state, read_cards
from gpupool.hardware.simdriver_state import Driver
from gpupool.hardware.simulated_limits import SimulatedLimits
from tests.native.simulated import MIB, environment, is_able_to_unshare, make_node

DRIVER = Driver("615.71.09", 13040)
SHARE_MIB = 3226

# How much of card 0 a program can take, in pieces of one MiB, and what it is shown before that.
TAKES_ALL = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0
result = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
if result:
    raise SystemExit(f"no context: {result}")
cuda.cuCtxSetCurrent(context)
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
taken, size = 0, 1024
while size:
    result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size << 20))
    if result == 0:
        taken += size
    else:
        assert result == 2, result
        size //= 2
print(total.value >> 20, free.value >> 20, taken)
"""


def walled_node(directory: Path, context_mib: int = 0) -> NodeFiles:
    return make_node(directory, driver=DRIVER._replace(context_mib=context_mib))


@dataclass(frozen=True, slots=True)
class Place:
    """What limits are set on, and how a process gets there."""

    node: NodeFiles
    directory: Path  # of the cgroup, or of the container
    state: Path | None = None  # where the container has the state file; None: a cgroup

    def command(self, *words: str | Path) -> list[str]:
        if self.state is None:
            enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
            return ["sh", "-c", enter, str(self.directory), *map(str, words)]
        # As a container's runtime does it, before the program starts.
        enter = f'mount --bind "{self.directory / "state"}" "{self.state}" && exec "$@"'
        return ["unshare", "-Urm", "sh", "-c", enter, "sh", *map(str, words)]

    def variables(self) -> dict[str, str]:
        own = {"GPUPOOL_SIM_STATE": str(self.state)} if self.state else {}
        return {**environment(self.node), **own}

    def run(
        self, *words: str | Path, extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**self.variables(), **(extra or {})},
        )

    def python(self, script: str, **extra: str) -> str:
        done = self.run(sys.executable, "-c", script, extra=extra)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, script: str) -> subprocess.Popen[str]:
        return self.start_with({}, script)

    def start_with(self, variables: Mapping[str, str], script: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(sys.executable, "-c", script),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**self.variables(), **variables},
        )


def container_place(node: NodeFiles, name: str = "a", pod: str = "pod-1") -> Place:
    if not is_able_to_unshare():
        pytest.skip("this machine lets nobody make namespaces")
    link_state(node, pod, name)
    mounted = node.directory / f"state-of-{pod}-{name}"
    mounted.touch()
    return Place(node, node.container(pod, name), mounted)


def limit(place: Place, soft_mib: int, hard_mib: int, card: int = 0) -> None:
    """Of a container: set as the agent of a local node does it."""
    wanted = MemoryLimits(soft_mib * MIB, hard_mib * MIB)
    limits = SimulatedLimits(place.node.state)
    limits.set(str(place.directory), read_cards(place.node)[card].uuid, wanted)


def cgroup_mount() -> Path:
    """Where this machine has cgroup v2, if this user may make cgroups."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[words.index("-") + 1] == "cgroup2" and words[3] == "/":
            found = Path(words[4])
            if os.geteuid() == 0 and os.access(found, os.W_OK):
                return found
    pytest.skip("needs root, and a mounted hierarchy of cgroup v2")


@contextlib.contextmanager
def cgroup_place(node: NodeFiles, *names: str) -> Iterator[Place]:
    """A real cgroup with real members, and its parents. The hierarchy need not have controllers."""
    top = cgroup_mount() / f"gpupool-test-{uuid.uuid4().hex[:12]}"
    made = [top]
    for name in names:
        made.append(made[-1] / name)
    for each in made:
        each.mkdir()
    try:
        yield Place(node, made[-1])
    finally:
        for each in reversed(made):
            with contextlib.suppress(FileNotFoundError):
                each.rmdir()
