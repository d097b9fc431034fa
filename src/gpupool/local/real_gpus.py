"""Whether this machine has cards of its own, for `gpupool up --gpus real`."""

import asyncio

from gpupool.hardware.driver import DriverReplaced, NoDriver, NotAnswering
from gpupool.hardware.nvml import NvmlDriver
from gpupool.local.home import CannotUse


def require_real_cards() -> None:
    """Raises CannotUse when there are none: a cluster would start, and its GPU nodes stay empty."""
    try:
        count = asyncio.run(_count())
    except (NoDriver, NotAnswering, DriverReplaced) as error:
        raise _cannot(str(error)) from error
    if not count:
        raise _cannot("the NVIDIA driver finds no card")


async def _count() -> int:
    driver = NvmlDriver()
    try:
        return len((await driver.look()).cards)
    finally:
        await driver.close()


def _cannot(why: str) -> CannotUse:
    return CannotUse(
        f"--gpus real wants an NVIDIA card in this machine, but {why}. "
        "Simulated cards need none: --gpus simulated."
    )
