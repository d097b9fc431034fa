"""The paths of the limiter in a container: what admission mounts there, and nobody else may."""

import posixpath
from collections.abc import Iterator

from gpupool.admission.asked import PodContainer, is_shared
from gpupool.contract.names import (
    GROUP_LIMITS,
    LIMITER_DIRECTORY,
    LIMITS_DIRECTORY,
    LIMITS_FILE,
    PRELOAD_LIST,
    REGION_DIRECTORY,
)
from kubeclient.objects import Obj

_LIMITS, _REGION = "gpupool-limits-", "gpupool-region-"  # volumes; a number follows
# The region (limiter_region.Region) has about 330 kB. The volume is in memory, so it is kept small.
_REGION_SIZE = "1Mi"
_RESERVED = (LIMITS_DIRECTORY, REGION_DIRECTORY, LIMITER_DIRECTORY, PRELOAD_LIST)


def mount_complaints(container: PodContainer) -> Iterator[str]:
    """A user's mount over one of these paths would replace the limiter or its limit file."""
    if not is_shared(container):
        return
    for i, mount in enumerate(container.spec.get("volumeMounts") or ()):
        # Normalised, because the container runtime does so: /etc/x/../ld.so.preload must not pass.
        path = _path(mount)
        if not _is_ours(mount) and any(f"{path}/".startswith(f"{each}/") for each in _RESERVED):
            yield (
                f"{container.field}.volumeMounts[{i}].mountPath: wanted a path that gpupool does "
                f"not use itself, found {mount['mountPath']}"
            )


def add_mounts(container: PodContainer, pod_spec: Obj, number: int) -> None:
    """Mounts the limit file, which the kubelet keeps equal to an annotation, and a directory in
    memory for the region in which the container's processes count together."""
    # Volumes for each container: no container may write to the region of another.
    limits, region = f"{_LIMITS}{number}", f"{_REGION}{number}"
    path = f"metadata.annotations['{GROUP_LIMITS}/{container.spec['name']}']"
    item = {"path": LIMITS_FILE, "fieldRef": {"apiVersion": "v1", "fieldPath": path}}
    pod_spec["volumes"] = [
        *(v for v in pod_spec.get("volumes") or () if v.get("name") not in (limits, region)),
        # Readable for everybody: the image may run as any user.
        {"name": limits, "downwardAPI": {"items": [item], "defaultMode": 0o444}},
        {"name": region, "emptyDir": {"medium": "Memory", "sizeLimit": _REGION_SIZE}},
    ]
    container.spec["volumeMounts"] = [
        *(m for m in container.spec.get("volumeMounts") or () if not _is_ours(m)),
        # Read-only, or the program could raise its own limit.
        {"name": limits, "mountPath": LIMITS_DIRECTORY, "readOnly": True},
        {"name": region, "mountPath": REGION_DIRECTORY},
    ]


def _path(mount: Obj) -> str:
    """The mount's path as the container sees it."""
    return posixpath.normpath(f"/{mount.get('mountPath', '').lstrip('/')}")


def _is_ours(mount: Obj) -> bool:
    """Whether admission added the mount: a pod may pass admission more than once."""
    name = mount.get("name", "")
    return (name.startswith(_LIMITS) and _path(mount) == LIMITS_DIRECTORY) or (
        name.startswith(_REGION) and _path(mount) == REGION_DIRECTORY
    )
