"""Stands in for NVIDIA's NRI plugin: puts cards into containers as an annotation of the pod says.

    python -m testbed.nvidia_nri --socket /var/run/nri/nri.sock --cdi /var/run/cdi

The annotation is `nvidia.cdi.k8s.io/container.NAME: nvidia.com/gpu=GPU-...[,...]`; NVIDIA's plugin
also reads `nvidia.cdi.k8s.io/pod` and `nvidia.cdi.k8s.io`, for all containers of the pod. It checks
nobody: whoever may annotate a pod may have any card. A container without the annotation is left
alone, and a connection that ends is made again.

It speaks NRI with our own client, and reads CDI files with our own reader; what it must not share
with the agent is the decision which card a container gets.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpupool.hardware.cdi import Edits, Specs
from kubeclient.nri import messages as nri
from kubeclient.nri.plugin import Disconnected, Name, Refused, run_plugin
from testbed.nvidia_ctk import KIND

_PREFIX = "nvidia.cdi.k8s.io"
_NAME = Name("nvidia-container-toolkit", "10")  # long before ours
_PAUSE_S = 0.2


@dataclass(frozen=True)
class Injector:
    """Implements `kubeclient.nri.plugin.Plugin`."""

    specs: Specs
    events: tuple[nri.Event, ...] = tuple(nri.Event)

    def configured(self, runtime: str, version: str) -> None:
        pass

    async def synchronized(self) -> None:
        pass

    async def create(
        self, pod: nri.PodSandbox, container: nri.Container
    ) -> nri.ContainerAdjustment | None:
        """Raises Refused."""
        names = asked(pod, container.name)
        if not names:
            return None
        edits = Edits()
        for name in names.split(","):
            kind, _, device = name.partition("=")
            found = self.specs.edits(device) if kind == KIND else None
            if found is None:
                raise Refused(f"unresolvable CDI devices {name}")
            edits += found
        return _adjustment(edits)

    async def start(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        pass

    async def removed(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        pass


def asked(pod: nri.PodSandbox, container: str) -> str:
    keys = (f"{_PREFIX}/container.{container}", f"{_PREFIX}/pod", _PREFIX)
    return next((pod.annotations[key] for key in keys if key in pod.annotations), "")


def _adjustment(edits: Edits) -> nri.ContainerAdjustment:
    variables = (text.partition("=") for text in edits.env)
    return nri.ContainerAdjustment(
        mounts=tuple(
            nri.Mount(mount.container_path, "bind", mount.host_path, mount.options)
            for mount in edits.mounts
        ),
        env=tuple(
            nri.KeyValue(name, value)
            for name, _, value in variables
            if name != "NVIDIA_VISIBLE_DEVICES"
        ),
        linux=nri.LinuxContainerAdjustment(
            tuple(
                nri.LinuxDevice(node.path, node.type, node.major, node.minor)
                for node in edits.device_nodes
            )
        ),
    )


async def serve(socket: Path, cdi: Path) -> None:
    """Until it is ended."""
    injector = Injector(Specs((cdi,)))
    while True:
        with contextlib.suppress(Disconnected):
            await run_plugin(socket, _NAME, injector)
        await asyncio.sleep(_PAUSE_S)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Put cards into containers, as NVIDIA's plugin.")
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--cdi", type=Path, required=True, help="directory of CDI files")
    options = parser.parse_args(arguments)
    asyncio.run(serve(options.socket, options.cdi))


if __name__ == "__main__":
    main()
