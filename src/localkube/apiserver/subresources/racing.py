"""Work that ends together."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def until_first(*work: Coroutine[Any, Any, None]) -> None:
    """Runs all until one ends; then the others are cancelled. Raises what that one raised."""
    tasks = [asyncio.create_task(item, name="until-first") for item in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
