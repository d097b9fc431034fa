"""Probes: start-up first, then liveness and readiness side by side, for one run of a container."""

import asyncio
from collections.abc import Awaitable, Callable

from kubeclient.objects import Obj
from localkube.kubelet.actions import ActionFailed
from localkube.kubelet.container_run import ContainerRun

# Raises ActionFailed.
Check = Callable[[Obj, ContainerRun], Awaitable[None]]
Told = Callable[[ContainerRun, str, str], None]  # an event: reason and message
Moved = Callable[[ContainerRun], None]

_NAMES = {
    "startupProbe": "Startup",
    "livenessProbe": "Liveness",
    "readinessProbe": "Readiness",
}


def is_probed(spec: Obj) -> bool:
    return any(spec.get(key) for key in _NAMES)


async def probe(run: ContainerRun, check: Check, told: Told, moved: Moved) -> None:
    """Keeps `started`, `ready` and `unhealthy` of the container up to date."""
    spec, container = run.spec, run.container
    if spec.get("startupProbe"):
        async for passed in Verdicts("startupProbe", run, check, told):
            if not passed:
                _fail(run, "startup", told, moved)
                return
            break
    container.started = True
    container.ready = not spec.get("readinessProbe")
    moved(run)
    async with asyncio.TaskGroup() as tasks:
        if spec.get("readinessProbe"):
            tasks.create_task(_readiness(run, check, told, moved), name="readiness")
        if spec.get("livenessProbe"):
            tasks.create_task(_liveness(run, check, told, moved), name="liveness")


async def _readiness(run: ContainerRun, check: Check, told: Told, moved: Moved) -> None:
    async for passed in Verdicts("readinessProbe", run, check, told):
        if run.container.ready != passed:
            run.container.ready = passed
            moved(run)


async def _liveness(run: ContainerRun, check: Check, told: Told, moved: Moved) -> None:
    async for passed in Verdicts("livenessProbe", run, check, told):
        if not passed:
            _fail(run, "liveness", told, moved)
            return


def _fail(run: ContainerRun, which: str, told: Told, moved: Moved) -> None:
    run.container.unhealthy = True
    name = run.container.name
    told(run, "Killing", f"Container {name} failed {which} probe, will be restarted")
    moved(run)


class Verdicts:
    """Asks again and again; gives a verdict whenever one of the thresholds is reached."""

    def __init__(self, key: str, run: ContainerRun, check: Check, told: Told) -> None:
        self._name = _NAMES[key]
        self._probe: Obj = run.spec[key]
        self._run = run
        self._check = check
        self._told = told
        self._in_a_row = 0
        self._passed: bool | None = None
        self._pause_s = float(self._probe.get("initialDelaySeconds") or 0)

    def __aiter__(self) -> "Verdicts":
        return self

    async def __anext__(self) -> bool:
        while True:
            await asyncio.sleep(self._pause_s)
            self._pause_s = float(self._probe.get("periodSeconds") or 10)
            passed = await self._ask()
            self._in_a_row = self._in_a_row + 1 if passed == self._passed else 1
            self._passed = passed
            key = "successThreshold" if passed else "failureThreshold"
            if self._in_a_row >= (self._probe.get(key) or (1 if passed else 3)):
                return passed

    async def _ask(self) -> bool:
        try:
            await self._check(self._probe, self._run)
        except ActionFailed as error:
            self._told(self._run, "Unhealthy", f"{self._name} probe failed: {error}")
            return False
        return True
