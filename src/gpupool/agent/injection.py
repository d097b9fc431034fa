"""Keeps the agent connected to the container runtime, where it puts the cards into containers.

While it is not connected, containers are held back (`injector.py`). If that lasts, the node offers
no cards: a pod waits where it is told why, instead of on a node that cannot start it.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpupool.agent.injector import HOLD_BACK, DriverWall, Injector
from gpupool.agent.news import News
from gpupool.hardware.cdi import DIRECTORIES, Specs
from kubeclient.kubeletapi.messages import Mount
from kubeclient.nri.plugin import Disconnected, Name, run_plugin

log = logging.getLogger(__name__)

# After all others, so that nobody changes what we have put in.
_NAME = Name("gpupool", "95")
_PAUSES_S = (0.1, 0.5, 1.0, 2.0)  # between tries; the last one again and again
_PATIENCE_S = 10.0  # a runtime that restarts is back by then


@dataclass(frozen=True, slots=True)
class NriPlace:
    socket: Path  # of the container runtime
    cdi: tuple[Path, ...] = DIRECTORIES
    devices: Path = Path("/dev")  # where the agent sees /dev of the node


class Injection:
    def __init__(
        self,
        node: str,
        place: NriPlace | None,
        limiter: Callable[[], tuple[Mount, ...]],
        wall: DriverWall,
        changed: Callable[[], None],
    ) -> None:
        """`place` None: the runtime or the mounts of Allocate bring the cards."""
        self._place = place
        self._changed = changed
        self._is_asked = False
        self._lost_s: float | None = None  # when the connection ended; None: it was never there
        self._problem = ""
        if place is not None:
            specs = Specs(place.cdi, place.devices)
            self._injector = Injector(node, specs, limiter, wall, self._told)

    @property
    def is_ours(self) -> bool:
        return self._place is not None

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What Allocate gives every container."""
        return (HOLD_BACK,) if self.is_ours else ()

    def is_possible(self, now_s: float) -> bool:
        """Whether containers that are made now get their cards, or will within seconds."""
        if not self.is_ours or self._is_asked:
            return True
        return self._lost_s is not None and now_s - self._lost_s < _PATIENCE_S

    def news(self) -> News:
        return News(
            True,
            "NoInjection",
            f"cards cannot be put into containers: {self._problem or 'not connected yet'}. "
            "The node offers no GPUs until the container runtime's NRI answers",
        )

    async def run(self) -> None:
        """Runs until cancelled."""
        tries = 0
        while self._place is not None:
            try:
                await run_plugin(self._place.socket, _NAME, self._injector)
            except Disconnected as error:
                if str(error) != self._problem:
                    log.warning("no connection to NRI", extra={"error": str(error)})
                self._problem = str(error)
            tries = 0 if self._is_asked else tries + 1
            self._told(False)
            await asyncio.sleep(_PAUSES_S[min(tries, len(_PAUSES_S) - 1)])

    def _told(self, is_asked: bool) -> None:
        if is_asked == self._is_asked:
            return
        if self._is_asked:
            self._lost_s = time.monotonic()
        self._is_asked = is_asked
        self._changed()
