"""The work loop that controllers share: no failure ends a worker."""

import asyncio
import contextlib

from kubeclient.errors import KubeError
from kubeclient.mirror import Key
from localkube.controllers.run import work_off
from localkube.work_queue import WorkQueue

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
