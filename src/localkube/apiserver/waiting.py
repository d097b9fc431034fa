"""What has to come before anything that waits."""

import asyncio


async def within_a_task() -> None:
    """Time limits, threads and task groups need a task, and a handler's first step has none."""
    await asyncio.sleep(0)
