"""Keeps the agent connected to the container runtime, as a plugin of it (NRI).

Where it puts the cards into containers, these are held back while it is not connected
(`injector.py`). If that lasts, the node offers no cards: a pod waits where it is told why, instead
of on a node that cannot start it.

Where others put them in, it refuses to start those whose card is missing (`start_check.py`). While
it is not connected, they start, and those without their card are reported (`card_watch.py`).
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpupool.agent.settings import AgentSettings
from kubeclient.kubeletapi.messages import Mount

if TYPE_CHECKING:
    from gpupool.agent.injector import DriverWall, Injector

log = logging.getLogger(__name__)

# After all others, so that nobody changes what we have put in.
_INDEX = "95"
_PAUSES_S = (0.1, 0.5, 1.0, 2.0)  # between tries; the last one again and again
_LOOK_FOR_SOCKET_S = 10.0
_PATIENCE_S = 10.0  # a runtime that restarts is back by then
# Does not start a container that a plugin refuses to start. CRI-O does.
_OBEYS = "containerd"


class Injection:
    def __init__(
        self,
        settings: AgentSettings,
        limiter: Callable[[], tuple[Mount, ...]],
        wall: "DriverWall",
        changed: Callable[[], None],
        refused: Callable[[str, str], None],
    ) -> None:
        """`changed` is called when `problem` or `checks_starts` may answer something new;
        `refused`, as `StartCheck` says."""
        self._settings = settings
        self._limiter = limiter
        self._wall = wall
        self._changed = changed
        self._refused = refused
        self._is_asked = False
        self._lost_s: float | None = None  # when the connection ended; None: it was never there
        self._why = "not connected yet"
        self._runtime = ""  # its name, as it says

    @property
    def is_there(self) -> bool:
        """Whether we can put cards in, as far as we know: the runtime may be away for now."""
        socket = self._settings.nri
        if socket is None or self._settings.nri_only_checks:
            return False
        return self._is_asked or self._lost_s is not None or _is_there(socket)

    def problem(self, now_s: float) -> str:
        """Why containers that are made now do not get their cards by us; empty: they do, or will
        within seconds."""
        if self._is_connected(now_s):
            return ""
        return f"the NRI of the container runtime does not answer: {self._why}"

    def checks_starts(self, now_s: float) -> bool:
        """Whether containers that others have put no card into do not start."""
        sees_processes = self._settings.pids is not None
        return sees_processes and self._runtime == _OBEYS and self._is_connected(now_s)

    def _is_connected(self, now_s: float) -> bool:
        """Or will be within seconds."""
        if self._is_asked:
            return True
        return self._lost_s is not None and now_s - self._lost_s < _PATIENCE_S

    async def run(self) -> None:
        """Runs until cancelled. Connected also where another way is chosen: containers that were
        allocated before may still be held back."""
        socket = self._settings.nri
        if socket is None:
            return
        # Nodes without NRI need not keep its messages in memory.
        while self._settings.nri_only_checks and not _is_there(socket):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_FOR_SOCKET_S)
        from kubeclient.nri.plugin import Disconnected, Name, run_plugin

        injector, tries = self._injector(), 0
        while True:
            try:
                await run_plugin(socket, Name("gpupool", _INDEX), injector)
            except Disconnected as error:
                if str(error) != self._why:
                    log.warning("no connection to NRI", extra={"error": str(error)})
                self._why = str(error)
            tries = 0 if self._is_asked else tries + 1
            self._told(False)
            await asyncio.sleep(_PAUSES_S[min(tries, len(_PAUSES_S) - 1)])

    def _injector(self) -> "Injector":
        from gpupool.agent.injector import Injector
        from gpupool.agent.start_check import StartCheck

        told = self._settings
        starts = None
        if told.pids is not None:
            seen = told.own_driver, told.mountinfo, told.container, told.pids
            starts = StartCheck(told.node, *seen, self._refused)
        return Injector(
            told.node,
            told.cdi,
            self._limiter,
            self._wall,
            self._told,
            self._named,
            starts,
            puts_in=not told.nri_only_checks,
        )

    def _named(self, runtime: str) -> None:
        self._runtime = runtime

    def _told(self, is_asked: bool) -> None:
        if is_asked == self._is_asked:
            return
        if self._is_asked:
            self._lost_s = time.monotonic()
        self._is_asked = is_asked
        self._changed()


def _is_there(socket: Path) -> bool:
    # Not by pathlib, which raises an error where the agent may not look (SELinux).
    return os.path.exists(socket)
