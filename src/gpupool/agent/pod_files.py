"""The files of a container with a share, as its node sees them: its limit, and what is counted.

The limit file is the kubelet's, and read-only in the container. The other is the container's own:
whatever a program has put in its place is not followed and not waited for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpupool.contract.names import LIMITS_DIRECTORY, LIMITS_FILE, REGION_DIRECTORY, REGION_FILE
from gpupool.hardware.limiter_region import BadRegion, read_region
from kubeclient.objects import Obj

# Where a volume of a pod is on the node, by the pod and the volume's entry in its spec.
VolumePath = Callable[[Obj, Obj], Path]

_KINDS = {"downwardAPI": "kubernetes.io~downward-api", "emptyDir": "kubernetes.io~empty-dir"}
_MIB = 1024 * 1024
_MAX_LIMITS_BYTES = 8192


class NoFiles(Exception):
    """The text says of which container, and why."""


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    limits: Path
    region: Path


def kubelet_volumes(root: Path) -> VolumePath:
    """As every kubelet has them: `root` is its /var/lib/kubelet/pods."""

    def path(pod: Obj, volume: Obj) -> Path:
        if not root.is_dir():
            raise NoFiles(f"the agent of its node does not see the files of pods: no {root}")
        kind = next((_KINDS[key] for key in volume if key in _KINDS), "")
        return root.joinpath(pod["metadata"]["uid"], "volumes", kind, volume["name"])

    return path


def container_files(pod: Obj, container: str, volume_path: VolumePath) -> ContainerFiles:
    """Raises NoFiles."""
    spec = pod["spec"]
    listed = [*(spec.get("initContainers") or ()), *spec["containers"]]
    found: Obj = next((each for each in listed if each["name"] == container), {})
    mounts = {m["mountPath"]: m["name"] for m in found.get("volumeMounts") or ()}
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    paths = []
    for directory in (LIMITS_DIRECTORY, REGION_DIRECTORY):
        volume = volumes.get(mounts.get(directory, ""))
        if volume is None:
            raise NoFiles(f"container {container} has no {directory}: it missed admission")
        paths.append(volume_path(pod, volume))
    return ContainerFiles(paths[0] / LIMITS_FILE, paths[1] / REGION_FILE)


def limits_in_force(files: ContainerFiles) -> str:
    """Empty: there is no such file yet."""
    try:
        with files.limits.open("rb") as file:
            return file.read(_MAX_LIMITS_BYTES).decode(errors="replace")
    except OSError:
        return ""


def used_mib(container: str, files: ContainerFiles) -> dict[str, int]:
    """By card, rounded up. Raises NoFiles."""
    try:
        return {use.uuid: -(-use.used_bytes // _MIB) for use in read_region(files.region)}
    except (BadRegion, OSError) as error:
        words = f"what container {container} uses cannot be read: {error}"
        raise NoFiles(words) from error
