"""The kubelet is stopped while it works."""

import asyncio
from pathlib import Path

import pytest

from tests.localkube.kubelet.world import world


class Stopped(Exception):
    pass


async def test_a_container_that_would_start_while_the_kubelet_stops_is_no_fault(
    tmp_path: Path,
) -> None:
    async def start() -> None:
        raise AssertionError("it was started")

    async with world(tmp_path) as here:
        assert here.fleet._live is not None
        processes = here.fleet._live.processes
        begun = asyncio.Event()

        async def work() -> None:
            """As a worker of the kubelet that is cancelled a turn later than the tasks."""
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                processes._spawn("container-start", start)

        async def stop() -> None:
            async with asyncio.TaskGroup() as processes.tasks:
                working.append(processes.tasks.create_task(work()))
                await begun.wait()
                raise Stopped

        working: list[asyncio.Task[None]] = []
        with pytest.raises(ExceptionGroup) as ended:
            await stop()
        assert [type(each) for each in ended.value.exceptions] == [Stopped]
        assert working[0].cancelled()
