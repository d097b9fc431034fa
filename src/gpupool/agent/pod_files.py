"""Two files of a container with a share, read from the node: its limit, and its memory count.

The limit file is written by the kubelet and read-only in the container. The file with the limiter's
count belongs to the container, so a program may have replaced it with anything: links in its place
are not followed, and a read never blocks (`limiter_region.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpupool.contract.names import LIMITS_DIRECTORY, LIMITS_FILE, REGION_DIRECTORY, REGION_FILE
from gpupool.hardware.limiter_region import BadRegion, read_region
from kubeclient.objects import Obj

# From a pod and one entry of its spec.volumes to the path of that volume on the node.
VolumePath = Callable[[Obj, Obj], Path]

_KINDS = {"downwardAPI": "kubernetes.io~downward-api", "emptyDir": "kubernetes.io~empty-dir"}
_MIB = 1024 * 1024
_MAX_LIMITS_BYTES = 8192


class NoFiles(Exception):
    """The files of a container cannot be read; the text says which container, and why."""


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    limits: Path
    region: Path


def kubelet_volumes(root: Path) -> VolumePath:
    """Volumes where every kubelet keeps them. `root` is its directory of pods."""

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
    # By path, because that is where the limiter in the container reads and writes.
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
    """What the limit file says; empty: there is no such file yet."""
    try:
        # Links are followed here: the kubelet builds this volume from symbolic links, to replace
        # all of its files at once, and the container cannot write to it.
        with files.limits.open("rb") as file:
            return file.read(_MAX_LIMITS_BYTES).decode(errors="replace")
    except OSError:
        return ""


def used_mib(container: str, files: ContainerFiles) -> dict[str, int]:
    """What the container uses of each card (by uuid), rounded up. Raises NoFiles."""
    try:
        # Rounded up: the scheduler gives away the rest, which must not contain memory in use.
        return {use.uuid: -(-use.used_bytes // _MIB) for use in read_region(files.region)}
    except (BadRegion, OSError) as error:
        words = f"what container {container} uses cannot be read: {error}"
        raise NoFiles(words) from error
