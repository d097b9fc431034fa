"""Refuses to start a container whose card did not get into it, where the container runtime asks.

By some ways (`core.ways.OTHERS_PUT_IN`) nobody asks us whether the card is in. But containerd asks
its plugins (NRI) before it starts the program of a container that it has made. Then the container
has all its mounts, and nobody but the runtime has run in it: no image can hide anything yet, and it
does not matter whether its program is static or preloads libraries.

Nobody is refused on a guess (`missing_cards.py`). A container is looked at only if Allocate has
promised it a card by such a way; it says so in the environment of the container, where its user may
take it back. And it is refused only if its mounts can be seen, and no file of the driver is one.
"""

import asyncio
import re
from collections.abc import Callable
from typing import NamedTuple

from gpupool.agent.covered import MountsOf
from gpupool.agent.missing_cards import MOST_TEXT, PidsOf, can_tell, has_driver, places
from gpupool.agent.owners import Owner
from gpupool.agent.way_facts import HANDLERS, OwnDriver
from gpupool.contract.names import ENV_CARD_CHECK
from kubeclient.nri.messages import Container, PodSandbox

# As `ways.card_check` writes it.
_PROMISE = re.compile(r"\S+ node \S+, way ([\w.=-]{1,300})")
# In the mount namespace of this process, the node sees its own mounts.
_FIRST_PROCESS = 1


class StartCheck(NamedTuple):
    node: str
    own_driver: OwnDriver | None
    mountinfo: MountsOf
    container: Owner
    pids: PidsOf
    told: Callable[[str, str], None]  # of every refusal: uid of the pod, words

    async def refusal(self, pod: PodSandbox, container: Container) -> str:
        """Why the container must not start; empty: it may."""
        way = promised_way(container)
        if not way or pod.runtime_handler not in ("", *HANDLERS):
            return ""
        if not can_tell(self.own_driver, self.mountinfo):
            return ""
        seen = await self._mounts(container)
        if len(seen) > MOST_TEXT or has_driver(seen) or not self._is_of(container, seen):
            return ""
        words = (
            f"container {container.name} was promised a card, which did not get into it: it has no "
            f"file of the driver. Node {self.node}, way {way}. "
            "`gpupool doctor --canary` checks the node"
        )
        self.told(pod.uid, words)
        return words

    async def _mounts(self, container: Container) -> str:
        """Of the process that waits to become the program; empty: it cannot be seen."""
        # The number is right where the runtime and the agent see the same processes.
        if self.container(container.pid) == container.id:
            return self.mountinfo(container.pid)
        found = await asyncio.to_thread(self.pids, (container.id,))
        return next(filter(None, map(self.mountinfo, found.get(container.id, ()))), "")

    def _is_of(self, container: Container, mountinfo: str) -> bool:
        """Whether these are the mounts of the container: one is there that the runtime was told to
        make, and that the node itself does not have. Other sandboxes have theirs inside."""
        wanted = {mount.destination for mount in container.mounts}
        return bool(wanted & (places(mountinfo) - places(self.mountinfo(_FIRST_PROCESS))))


def promised_way(container: Container) -> str:
    """By which way Allocate has promised a card; empty: it has not, or the user wants no check."""
    values = [each for each in container.env if each.startswith(f"{ENV_CARD_CHECK}=")]
    # Of two, programs see the last.
    found = _PROMISE.fullmatch(values[-1].partition("=")[2]) if values else None
    return found[1] if found else ""
