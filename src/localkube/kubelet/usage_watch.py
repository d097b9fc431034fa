"""Looks every few seconds whether pods use more than their limits.

Too much local storage: the pod is evicted. Too much memory: the container is killed, as the kernel
would do at once. Programs of ours that stand in for an image are spared: they are not what the
limit was meant for.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from localkube.kubelet import process_table
from localkube.kubelet.container_run import ContainerRun, PodRuns
from localkube.kubelet.limits import PodLimits, storage_complaint
from localkube.kubelet.runtime_process import ProcessRuntime

_MOST_FILES = 200_000  # of one pod that are counted
OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True, slots=True)
class UsageWatch:
    runtime: ProcessRuntime
    evict: Callable[[str, str], None]  # a pod's uid, and why

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self.runtime.settings.usage_s)
            limited = [(uid, r) for uid, r in self.runtime.pods.items() if r.limits and r.runs]
            if any(runs.limits.memory for _, runs in limited):
                await self._check_memory([runs for _, runs in limited])
            for uid, runs in limited:
                await self._check_storage(uid, runs)

    async def _check_memory(self, limited: Iterable[PodRuns]) -> None:
        watched = {
            run.pid: (run, runs.limits.memory[run.container.name])
            for runs in limited
            for run in runs.runs.values()
            if run.pid and not run.is_ours and run.container.name in runs.limits.memory
        }
        used = await asyncio.to_thread(_memory, set(watched))
        for pid, (run, limit) in watched.items():
            if used[pid] > limit and not run.exited.done():
                run.killed_for = OUT_OF_MEMORY
                self.runtime.signal(run, signal.SIGKILL)

    async def _check_storage(self, uid: str, runs: PodRuns) -> None:
        if not runs.limits.storage and not runs.limits.empty_dirs:
            return
        live = list(runs.runs.values())
        complaint = await asyncio.to_thread(_complaint, runs.limits, runs.volumes.directory, live)
        if complaint is not None:
            self.evict(uid, complaint)


def _memory(leaders: set[int]) -> dict[int, int]:
    """What the sessions of these processes have for themselves, in bytes."""
    found = dict.fromkeys(leaders, 0)
    for entry in process_table.everyone():
        if entry.session in found:
            found[entry.session] += process_table.own_memory(entry.pid)
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
    path = run.output.log.path
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def _size(directory: Path, most_files: int) -> tuple[int, int]:
    """What the files take on disk; and how many more may be looked at."""
    total = 0
    for parent, _, names in os.walk(directory, onerror=None):
        for name in names:
            if most_files <= 0:
                return total, 0
            most_files -= 1
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
            except OSError:
                continue  # gone in the meantime
    return total, most_files
