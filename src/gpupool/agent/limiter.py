"""Installs the limiter on the node, with the memory that a CUDA context takes.

The driver takes hundreds of MiB for the first context of a process, which the limiter counts into
the share. So it must know how much that is before it is given out. The figure is measured when the
driver first answers, and the last good one is kept in the directory of the installations: a card
that hangs while the agent starts must not make shares larger.
"""

import asyncio
import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from gpupool.hardware import limiter
from gpupool.hardware.context_memory import LARGEST_MIB, NotMeasured
from gpupool.hardware.driver import Driver
from kubeclient.kubeletapi.messages import Mount

_LAST_GOOD = "context-mib"


@dataclass(frozen=True, slots=True)
class LimiterPlace:
    directory: Path  # of the installations; the same path on the node
    driver: str = ""  # the directory where containers find libcuda.so.1


@dataclass(frozen=True, slots=True)
class Installed:
    mounts: tuple[Mount, ...] = ()  # empty: it could not be installed
    context_mib: int | None = None  # None: not known, so contexts are not counted
    problem: str = ""  # why it is not as it should be

    @property
    def is_complete(self) -> bool:
        return not self.problem


async def install_limiter(place: LimiterPlace, driver: Driver) -> Installed:
    """Never raises: what went wrong is in `problem`."""
    problem = ""
    try:
        context_mib: int | None = await driver.context_mib()
    except NotMeasured as error:
        context_mib = _last_good(place)
        used = "not counted" if context_mib is None else f"counted as {context_mib} MiB, as before"
        problem = (
            f"the memory of a CUDA context could not be measured: {error}. "
            f"In isolated shares, contexts are {used}"
        )
    settings = limiter.Settings(driver=place.driver, context_mib=context_mib or 0)
    try:
        files = await asyncio.to_thread(limiter.install, place.directory, settings)
    except (limiter.LimiterError, OSError) as error:
        return Installed(problem=f"the limiter cannot be installed: {error}")
    if not problem and context_mib is not None:
        _keep(place, context_mib)
    mounts = (Mount(inside, outside, read_only=True) for outside, inside in files.mounts)
    return Installed(tuple(mounts), context_mib, problem)


def _last_good(place: LimiterPlace) -> int | None:
    try:
        known = int((place.directory / _LAST_GOOD).read_bytes()[:16])
    except (OSError, ValueError):
        return None
    return known if 0 <= known <= LARGEST_MIB else None


def _keep(place: LimiterPlace, context_mib: int) -> None:
    # If this fails, the next agent measures without it.
    with contextlib.suppress(OSError):
        new = place.directory / f".{_LAST_GOOD}-{os.getpid()}"
        new.write_text(f"{context_mib}\n", encoding="ascii")
        new.replace(place.directory / _LAST_GOOD)
