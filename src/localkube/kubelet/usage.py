"""What pods and nodes use now, from /proc and from disk, and the watch over the limits of pods."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kubeclient.objects import Obj
from localkube.kubelet import process_table
from localkube.kubelet.container_run import ContainerRun, PodRuns
from localkube.kubelet.limits import PodLimits, storage_complaint
from localkube.kubelet.runtime_process import ProcessRuntime
from localkube.kubelet.state import Pod, Role, Stage

log = logging.getLogger(__name__)

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_FRESH_S = 5.0  # how long a sample is used
# Made-up usage of a timer, and of a node without its pods.
_TIMER = (1_000_000, 1024 * 1024)
_NODE = (50_000_000, 256 * 1024 * 1024)

Used = tuple[int, int]  # nanocores, bytes


class Usage:
    def __init__(self) -> None:
        self._sampled_at = 0.0
        self._ticks: dict[str, int] = {}  # of containers, by id
        self._used: dict[str, Used] = {}

    def sample(self, runtime: ProcessRuntime) -> None:
        now = time.monotonic()
        passed_s = now - self._sampled_at
        if passed_s < _FRESH_S:
            return
        leaders = runtime.leaders()
        ticks: dict[str, int] = dict.fromkeys(leaders.values(), 0)
        memory: dict[str, int] = dict.fromkeys(leaders.values(), 0)
        for container, entry in _processes(leaders, runtime.launches.pid):
            ticks[container] += entry.ticks
            memory[container] += entry.pages * _PAGE
        first = not self._sampled_at
        self._used = {
            container: (
                0 if first else self._nanocores(container, ticks[container], passed_s),
                memory[container],
            )
            for container in ticks
        }
        self._ticks = ticks
        self._sampled_at = now

    def pods(self, pods: Iterable[Pod]) -> dict[tuple[str, str], list[Obj]]:
        return {
            pod.key: [
                {"name": container.name, "usage": _shown(self._of(pod, container.container_id))}
                for container in pod.containers
                if container.stage is Stage.RUNNING and container.role is not Role.EPHEMERAL
            ]
            for pod in pods
            if any(container.stage is Stage.RUNNING for container in pod.containers)
        }

    def nodes(self, names: Iterable[str], pods: Iterable[Pod]) -> dict[str, Obj]:
        totals = {name: list(_NODE) for name in names}
        for pod in pods:
            for container in pod.containers:
                if container.stage is Stage.RUNNING and pod.node in totals:
                    cores, memory = self._of(pod, container.container_id)
                    totals[pod.node][0] += cores
                    totals[pod.node][1] += memory
        return {name: _shown((cores, memory)) for name, (cores, memory) in totals.items()}

    def _of(self, pod: Pod, container_id: str) -> Used:
        return self._used.get(container_id, _TIMER)

    def _nanocores(self, container: str, ticks: int, passed_s: float) -> int:
        more = max(
            0, ticks - self._ticks.get(container, 0)
        )  # less, if a child with its ticks has ended
        return int(more * _TICK_S / passed_s * 1e9)


def _shown(used: Used) -> Obj:
    cores, memory = used
    return {"cpu": f"{cores}n", "memory": f"{memory // 1024}Ki"}


_MOST_FILES = 200_000  # counted at most, for one pod
OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True, slots=True)
class UsageWatch:
    """Checks periodically whether pods exceed their limits.

    Too much local storage: the pod is evicted. Too much memory: the container is killed, as the
    kernel would do at once. Stand-ins are exempt: the limit is meant for the image's own program.
    """

    runtime: ProcessRuntime
    evict: Callable[[str, str], None]  # a pod's uid, and why

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(self.runtime.settings.usage_s)
            limited = {uid: r for uid, r in self.runtime.pods.items() if r.limits and r.runs}
            if any(runs.limits.memory for runs in limited.values()):
                await _guarded(self._check_memory(limited.values()), "memory")
            for uid, runs in limited.items():
                await _guarded(self._check_storage(uid, runs), uid)

    async def _check_memory(self, limited: Iterable[PodRuns]) -> None:
        watched = [
            (run, runs.limits.memory[run.container.name])
            for runs in limited
            for run in runs.runs.values()
            if run.pid and not run.is_ours and run.container.name in runs.limits.memory
        ]
        leaders, reaper = self.runtime.leaders(), self.runtime.launches.pid
        used = await asyncio.to_thread(_memory, leaders, reaper, {run.id for run, _ in watched})
        for run, limit in watched:
            if used[run.id] > limit and not run.exited.done():
                run.killed_for = OUT_OF_MEMORY
                self.runtime.signal(run, signal.SIGKILL)

    async def _check_storage(self, uid: str, runs: PodRuns) -> None:
        if not runs.limits.storage and not runs.limits.empty_dirs:
            return
        live = list(runs.runs.values())
        complaint = await asyncio.to_thread(_complaint, runs.limits, runs.volumes.directory, live)
        if complaint is not None:
            self.evict(uid, complaint)


async def _guarded(check: Awaitable[None], what: str) -> None:
    """What cannot be checked now is checked the next time."""
    try:
        await check
    except Exception:
        log.exception("usage not checked", extra={"what": what})


def _processes(leaders: dict[int, str], reaper: int) -> Iterator[tuple[str, process_table.Entry]]:
    """Processes of containers that have just ended are left out."""
    found = process_table.of_containers(leaders, reaper) if leaders else ()
    known = set(leaders.values())
    return ((container, entry) for container, entry in found if container in known)


def _memory(leaders: dict[int, str], reaper: int, wanted: set[str]) -> dict[str, int]:
    """The memory of the processes of these containers, in bytes."""
    found = dict.fromkeys(wanted, 0)
    for container, entry in _processes(leaders, reaper):
        if container in found:
            found[container] += process_table.own_memory(entry.pid)
    return found


def _complaint(limits: PodLimits, volumes: Path, runs: Iterable[ContainerRun]) -> str | None:
    left = _MOST_FILES
    sizes: dict[str, int] = {}
    for name, volume in limits.empty_dirs.items():
        sizes[name], left = _size(volumes / str(volume.number), left)
    containers: dict[str, int] = {}
    for run in runs:
        size, left = _size(run.files.directory, left)
        containers[run.container.name] = size + _log_size(run)
    return storage_complaint(limits, containers, sizes)


def _log_size(run: ContainerRun) -> int:
    total = 0
    path = run.output.log.path
    for file in path.parent.glob(f"{path.name}*"):
        with contextlib.suppress(OSError):  # rotated or deleted in the meantime
            total += file.stat().st_size
    return total


def _size(directory: Path, most_files: int) -> tuple[int, int]:
    """The size of the files on disk, and how many more files may be counted. Not by os.walk, which
    calls itself for each level: programs make trees that are deeper than Python's stack."""
    total = 0
    left = [str(directory)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if most_files <= 0:
                        return total, 0
                    most_files -= 1
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue  # gone in the meantime, or its path is too long for the kernel
    return total, most_files
