"""The work loop that controllers share: no failure ends a worker."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from kubeclient.errors import Conflict, KubeError
from kubeclient.mirror import Key
from kubeclient.resources import CONFIG_MAPS
from localkube.controllers import event_expiry
from localkube.controllers.run import work_off
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
