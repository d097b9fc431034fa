"""What pods and nodes use now: CPU and memory of their processes, sampled from /proc."""

import os
import time
from collections.abc import Iterable

from kubeclient.objects import Obj
from localkube.kubelet import process_table
from localkube.kubelet.container_run import ContainerRun
from localkube.kubelet.state import Pod, Role, Stage

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_FRESH_S = 5.0  # a sample serves so long
# What a timer, and a node by itself, is said to use.
_TIMER = (1_000_000, 1024 * 1024)
_NODE = (50_000_000, 256 * 1024 * 1024)

Used = tuple[int, int]  # nanocores, bytes


class Usage:
    def __init__(self) -> None:
        self._sampled_at = 0.0
        self._ticks: dict[str, int] = {}  # of containers, by id
        self._used: dict[str, Used] = {}

    def sample(self, runs: Iterable[ContainerRun]) -> None:
        now = time.monotonic()
        passed_s = now - self._sampled_at
        if passed_s < _FRESH_S:
            return
        leaders = {run.pid: run.id for run in runs if run.pid}
        ticks: dict[str, int] = dict.fromkeys(leaders.values(), 0)
        memory: dict[str, int] = dict.fromkeys(leaders.values(), 0)
        for entry in process_table.everyone() if leaders else ():
            container = leaders.get(entry.session)
            if container is not None:
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
        more = max(0, ticks - self._ticks.get(container, 0))  # a child that ended took its ticks
        return int(more * _TICK_S / passed_s * 1e9)


def _shown(used: Used) -> Obj:
    cores, memory = used
    return {"cpu": f"{cores}n", "memory": f"{memory // 1024}Ki"}
