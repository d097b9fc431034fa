"""Keeps the agent connected to the container runtime, where it puts the cards into containers.

While it is not connected, containers are held back (`injector.py`). If that lasts, the node offers
no cards: a pod waits where it is told why, instead of on a node that cannot start it.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpupool.hardware.cdi import Specs
from kubeclient.kubeletapi.messages import Mount

if TYPE_CHECKING:
    from gpupool.agent.injector import DriverWall

log = logging.getLogger(__name__)

# After all others, so that nobody changes what we have put in.
_INDEX = "95"
_PAUSES_S = (0.1, 0.5, 1.0, 2.0)  # between tries; the last one again and again
_PATIENCE_S = 10.0  # a runtime that restarts is back by then


class Injection:
    def __init__(
        self,
        node: str,
        socket: Path | None,
        specs: Specs,
        limiter: Callable[[], tuple[Mount, ...]],
        wall: "DriverWall",
        changed: Callable[[], None],
    ) -> None:
        """`socket`: of the container runtime; None: the agent is no plugin of it."""
        self._socket = socket
        self._changed = changed
        self._is_asked = False
        self._lost_s: float | None = None  # when the connection ended; None: it was never there
        self._why = "not connected yet"
        self._for_injector = (node, specs, limiter, wall)

    @property
    def is_there(self) -> bool:
        """Whether the runtime has NRI, as far as we know: it may be away for now."""
        if self._socket is None:
            return False
        return self._is_asked or self._lost_s is not None or self._socket.exists()

    def problem(self, now_s: float) -> str:
        """Why containers that are made now do not get their cards by us; empty: they do, or will
        within seconds."""
        if self._is_asked:
            return ""
        if self._lost_s is not None and now_s - self._lost_s < _PATIENCE_S:
            return ""
        return f"the NRI of the container runtime does not answer: {self._why}"

    async def run(self) -> None:
        """Runs until cancelled. Connected also where another way is chosen: containers that were
        allocated before may still be held back."""
        if self._socket is None:
            return
        # Most nodes have another way, and need not keep the messages of NRI in memory.
        from gpupool.agent.injector import Injector
        from kubeclient.nri.plugin import Disconnected, Name, run_plugin

        injector, tries = Injector(*self._for_injector, self._told), 0
        while True:
            try:
                await run_plugin(self._socket, Name("gpupool", _INDEX), injector)
            except Disconnected as error:
                if str(error) != self._why:
                    log.warning("no connection to NRI", extra={"error": str(error)})
                self._why = str(error)
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
