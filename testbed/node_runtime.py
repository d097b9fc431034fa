"""What a node wants of its container runtime: containerd_runtime.py and crio_runtime.py have it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class NodeRuntime(Protocol):
    @property
    def has_leaves(self) -> bool:
        """Whether containers have cgroups v2 (`unified_leaves.py`)."""

    def programs(self) -> dict[str, Path]:
        """By name, for the PATH of the node. Raises BuildError."""

    def socket(self, folder: Path) -> Path:
        """Where the kubelet finds it. `folder`: of the node."""

    def write(self, folder: Path, runc: Path, nvidia: Path) -> None:
        """Its configuration. `nvidia`: what stands in for NVIDIA's runtime."""

    def script(self, folder: Path, images: Path) -> str:
        """Lines of sh that start it and give it the images, an archive of `docker save`."""
