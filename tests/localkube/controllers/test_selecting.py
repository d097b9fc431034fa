"""Users write selectors and pods, many and large: whoever looks at them shares the event loop."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kubeclient import turns
from kubeclient.objects import Obj
from kubeclient.resources import DISRUPTION_BUDGETS, PODS, SERVICE_ACCOUNTS, SERVICES, Resource
from localkube.apiserver.validation.metadata import LABELS_MAX
from localkube.controllers import disruption, endpoints
from localkube.controllers.run import work_off
from localkube.controllers.selecting import compiled, selected_pods
from localkube.work_queue import WorkQueue
from tests.faults.all_controllers import AllControllers, all_controllers
from tests.faults.loop_watchdog import Watchdog
from tests.localkube.controllers.desk import desk_for
from tests.localkube.controllers.samples import pod

_BUDGETS = 150


def _budget(name: str, selector: Obj) -> Obj:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": selector},
    }


def _not_in() -> Obj:
    """As many requirements as are allowed, and a pod without these labels meets all of them."""
    keys = (f"k{number}" for number in range(LABELS_MAX // 2))
    return {"matchExpressions": [{"key": k, "operator": "NotIn", "values": ["v"]} for k in keys]}


async def _one_pod(everything: AllControllers) -> None:
    await everything.made(SERVICE_ACCOUNTS, "default", name="default")
    await everything.kube.create(PODS, pod("p", "web", namespace="default"))


async def _touch(everything: AllControllers, resource: Resource, name: str, **labels: str) -> None:
    path = resource.path("default", name)
    await everything.kube.patch(path, {"metadata": {"labels": labels}})


async def _expected_pods(everything: AllControllers, name: str, count: int) -> None:
    def seen(budget: Obj) -> bool:
        return bool(budget.get("status", {}).get("expectedPods") == count)

    await everything.shows(DISRUPTION_BUDGETS, name, "default", seen)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


async def test_a_pod_that_many_large_budgets_select_keeps_nobody_waiting(private: Path) -> None:
    async with all_controllers(private, ()) as everything:
        await _one_pod(everything)
        for number in range(_BUDGETS):
            await everything.kube.create(DISRUPTION_BUDGETS, _budget(f"b{number}", _not_in()))
        for number in range(_BUDGETS):
            await _expected_pods(everything, f"b{number}", 1)
        with Watchdog().watching() as watchdog:
            await _touch(everything, PODS, "p", k0="v")
            for number in range(_BUDGETS):
                await _expected_pods(everything, f"b{number}", 0)
        assert not watchdog.stalls, "\n".join(watchdog.stalls)


async def test_a_pod_beside_many_large_services_keeps_nobody_waiting(private: Path) -> None:
    wanted = {f"k{number}": "v" for number in range(LABELS_MAX)}
    async with all_controllers(private, ()) as everything:
        await _one_pod(everything)
        for number in range(60):
            spec = {"ports": [{"port": 80}], "selector": wanted}
            metadata = {"name": f"s{number}", "namespace": "default"}
            await everything.kube.create(SERVICES, {"metadata": metadata, "spec": spec})
        last = _budget("b", {"matchLabels": {"told": "yes"}})
        await everything.kube.create(DISRUPTION_BUDGETS, last)
        with Watchdog().watching() as watchdog:
            await _touch(everything, PODS, "p", told="yes")
            await _expected_pods(everything, "b", 1)
        assert not watchdog.stalls, "\n".join(watchdog.stalls)


class _Others:
    """Another task of the loop, and how often it had its turn."""

    def __init__(self) -> None:
        self.turns = 0
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)

    async def end(self) -> int:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        return self.turns


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_TURN_S", -1.0)


@pytest.mark.usefixtures("short_turns")
async def test_pods_are_read_in_turns_with_others(tmp_path: Path) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:
        for number in range(20):
            await desk.create(PODS, pod(f"p{number}", "web" if number % 2 else "other"))
        await desk.settle()
        others = _Others()
        chosen = compiled({"matchLabels": {"app": "web"}})
        found = await selected_pods(desk.contexts[0], "default", chosen)
        assert len(found) == 10
        assert await others.end() >= 20


@pytest.mark.usefixtures("short_turns")
async def test_a_worker_lets_others_go_first_between_two_keys() -> None:
    queue: WorkQueue[int] = WorkQueue()
    for key in range(20):
        queue.add(key)
    is_last = asyncio.Event()

    async def reconcile(key: int) -> None:
        if key == 19:
            is_last.set()

    others = _Others()
    worker = asyncio.ensure_future(work_off("test", queue, reconcile))
    await is_last.wait()
    worker.cancel()
    assert await others.end() >= 20


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app": "web"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
        {"matchExpressions": [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(40)]},
    ],
)
async def test_a_budget_hears_of_pods_that_come_and_change(tmp_path: Path, selector: Obj) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:

        async def expected() -> int:
            await desk.settle()
            status = (await desk.get(DISRUPTION_BUDGETS, "b"))["status"]
            return int(status["expectedPods"])

        await desk.create(DISRUPTION_BUDGETS, _budget("b", selector))
        assert await expected() == 0
        await desk.create(PODS, pod("p", "web"))
        assert await expected() == 1
        change: Any = {"metadata": {"labels": {"app": "no", "k7": ""}}}
        await desk.kube.patch(PODS.path("default", "p"), change)
        assert await expected() == 0


async def test_a_service_without_a_selector_has_no_pods(tmp_path: Path) -> None:
    async with desk_for(tmp_path, endpoints.controller()) as desk:
        await desk.create(PODS, pod("p", "web"))
        service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {}}
        assert await endpoints.pods_of(service, desk.contexts[0]) == []
