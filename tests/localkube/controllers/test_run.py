"""The work loop that controllers share: no failure ends a worker."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from kubeclient.errors import Conflict, KubeError
from kubeclient.mirror import Key
from kubeclient.resources import CONFIG_MAPS, Resource
from localkube.controllers import event_expiry
from localkube.controllers.run import Context, Controller, Watch, run_controllers, work_off
from localkube.health import Health
from localkube.supervision import Supervisor
from localkube.work_queue import WorkQueue
from tests.localkube.controllers.desk import desk_for

GOOD, BAD = ("default", "good"), ("default", "bad")


async def test_a_worker_outlives_every_failure_of_a_reconcile() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    done = asyncio.Event()
    failures = iter([ZeroDivisionError(), KubeError("refused"), None])

    async def reconcile(key: Key) -> float | None:
        if key == GOOD:
            done.set()
            return None
        failure = next(failures)
        if failure is not None:
            raise failure
        queue.add(GOOD)
        return 10**400  # seconds that no timer can wait

    queue.add(BAD)
    working = asyncio.create_task(work_off("test", queue, reconcile))
    await asyncio.wait_for(done.wait(), 10)
    assert not working.done()
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
    queue.close()


async def test_a_later_object_of_the_name_is_never_deleted(tmp_path: Path) -> None:
    async with desk_for(tmp_path, event_expiry.CONTROLLER) as desk:
        context = desk.contexts[0]
        first = await desk.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await context.delete(CONFIG_MAPS, first)
        await context.delete(CONFIG_MAPS, first)  # gone already
        second = await desk.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await context.delete(CONFIG_MAPS, first)
        await desk.patch(CONFIG_MAPS, "a", {"data": {"a": "b"}})
        with pytest.raises(Conflict):
            await context.delete(CONFIG_MAPS, second, unchanged=True)
        assert "a" in await desk.names(CONFIG_MAPS)
        await context.delete(CONFIG_MAPS, second)
        assert "a" not in await desk.names(CONFIG_MAPS)


async def test_a_controller_whose_kind_is_not_served_keeps_no_other_waiting(tmp_path: Path) -> None:
    """As after somebody deleted a product's CRD: its controller waits, the others work."""
    seen = asyncio.Event()

    async def see(key: Key, context: Context) -> float | None:
        if key == GOOD:
            seen.set()
        return None

    missing = Resource("example.com", "v1", "things", "Thing")
    controllers = (
        Controller("lost", (Watch(missing),), see),
        Controller("works", (Watch(CONFIG_MAPS),), see),
    )
    async with desk_for(tmp_path) as desk:
        await desk.create(CONFIG_MAPS, {"metadata": {"name": GOOD[1]}})
        running = asyncio.create_task(run_controllers(controllers, desk.kube, Supervisor(Health())))
        await asyncio.wait_for(seen.wait(), 30)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_key_that_breaks_the_reconcile_is_told_with_its_object(tmp_path: Path) -> None:
    health, may_work = Health(), asyncio.Event()

    async def reconcile(key: Key, context: Context) -> float | None:
        if key == BAD and not may_work.is_set():
            raise OverflowError("too large")
        return None

    controller = Controller("picky", (Watch(CONFIG_MAPS),), reconcile)

    def objects() -> tuple[str, ...]:
        return next(check.objects for check in health if check.name == "picky")

    async with desk_for(tmp_path) as desk:
        for _, name in (GOOD, BAD):
            await desk.create(CONFIG_MAPS, {"metadata": {"name": name}})
        running = asyncio.create_task(run_controllers((controller,), desk.kube, Supervisor(health)))
        async with asyncio.timeout(30):
            while not list(health) or not objects():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert objects() == ("ConfigMap default/bad: OverflowError: too large",)
            may_work.set()
            while objects():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert health.failing() == []
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
