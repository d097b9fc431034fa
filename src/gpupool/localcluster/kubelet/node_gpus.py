"""The cards of nodes, and how containers get to see them: what NVIDIA's container runtime does.

A container sees the driver of its node when NVIDIA_VISIBLE_DEVICES names cards, and then only
those: the simulated driver reads that variable itself. Where cards are this machine's own, the
driver is where it always is, and CUDA is told which of them to use.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpupool.contract.names import (
    ENV_VISIBLE_DEVICES,
    LIMITER_DIRECTORY,
    VISIBLE_DEVICES_NONE,
)
from gpupool.hardware.simdriver import NodeFiles, create_node
from gpupool.hardware.simdriver_cards import card_profile
from gpupool.hardware.simdriver_state import SimdriverError
from gpupool.localcluster.kubelet.node_files import node_driver
from gpupool.localcluster.kubelet.sandbox import Bind
from gpupool.localcluster.kubelet.settings import Cards

log = logging.getLogger(__name__)

DRIVER = "/usr/local/nvidia"  # where a container with a view of its own finds it
_CUDA_DEVICES = "CUDA_VISIBLE_DEVICES"


class Shown(NamedTuple):
    """How a container gets to see cards."""

    variables: Mapping[str, str]
    binds: tuple[Bind, ...] = ()
    device_files: bool = False


NOTHING_SHOWN = Shown({})


@dataclass(frozen=True, slots=True)
class NodeGpus:
    directory: Path
    cards: Mapping[str, Cards]  # of instance types
    real: bool

    def has(self, instance_type: str) -> bool:
        return instance_type in self.cards

    def make_driver(self, node: str, instance_type: str) -> None:
        """As after a boot: nothing runs on the cards. Without one, the node has no cards to show,
        and its agent says so."""
        if self.real:
            return
        cards = self.cards[instance_type]
        profile = card_profile(cards.model, cards.memory_mib)
        try:
            create_node(node_driver(self.directory, node), node, [profile] * cards.count)
        except (SimdriverError, OSError) as error:
            log.error("no simulated driver", extra={"node": node, "error": str(error)})

    def driver(self, node: str) -> NodeFiles | None:
        files = NodeFiles(node_driver(self.directory, node))
        return None if self.real or not files.state.exists() else files

    def shown(
        self, node: str, variables: Mapping[str, str], *, own_view: bool, limited: bool = False
    ) -> Shown:
        """For a container with these variables; one that is limited finds the limiter first."""
        wanted = variables.get(ENV_VISIBLE_DEVICES, "")
        if wanted in ("", VISIBLE_DEVICES_NONE):
            return NOTHING_SHOWN
        if self.real:
            chosen = {} if wanted == "all" else {_CUDA_DEVICES: wanted}
            return Shown({**chosen, **_only(variables, _CUDA_DEVICES)}, device_files=True)
        files = self.driver(node)
        if files is None:
            return NOTHING_SHOWN
        if not own_view:
            return Shown(_found(variables, str(files.libraries), str(files.programs)))
        binds = (
            Bind(str(files.libraries), f"{DRIVER}/lib", True),
            Bind(str(files.programs), f"{DRIVER}/bin", True),
            Bind(str(files.state), f"{DRIVER}/{files.state.name}"),
        )
        libraries = _path((LIMITER_DIRECTORY if limited else None, f"{DRIVER}/lib"))
        return Shown(_found(variables, libraries, f"{DRIVER}/bin"), binds)


def _found(variables: Mapping[str, str], libraries: str, programs: str) -> dict[str, str]:
    return {
        "LD_LIBRARY_PATH": _path((variables.get("LD_LIBRARY_PATH"), libraries)),
        "PATH": _path((programs, variables.get("PATH"))),
    }


def _path(places: Iterable[str | None]) -> str:
    return os.pathsep.join(place for place in places if place)


def _only(variables: Mapping[str, str], name: str) -> dict[str, str]:
    return {name: variables[name]} if name in variables else {}
