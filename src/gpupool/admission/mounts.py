"""The volumes of the limiter in a container: admission mounts them, and nobody else may."""

import re
from collections.abc import Iterator

from gpupool.admission.asked import PodContainer, all_containers, gpu_containers, is_shared
from gpupool.admission.paths import cleaned, path_complaints
from gpupool.contract.names import (
    GROUP_LIMITS,
    LIMITS_DIRECTORY,
    LIMITS_FILE,
    REGION_DIRECTORY,
    REGION_VOLUME,
)
from kubeclient.objects import Obj

_LIMITS, _REGION = "gpupool-limits-", REGION_VOLUME  # volumes; a number follows
_OURS = re.compile(rf"({_LIMITS}|{_REGION})[0-9]+", re.ASCII)
# The region (limiter_region.Region) has about 330 kB. The volume is in memory, so it is kept small.
_REGION_SIZE = "1Mi"


def mount_complaints(pod: Obj) -> Iterator[str]:
    """About paths over the limiter's files, and about mounts of its volumes elsewhere. `pod` may
    have passed admission before."""
    numbers = {each.field: number for number, each in enumerate(gpu_containers(pod))}
    for container in all_containers(pod):
        mounts = container.spec.get("volumeMounts") or ()
        own = [mount for mount in mounts if _is_own(mount, container, numbers)]
        yield from path_complaints(container, own)
        for i, mount in enumerate(mounts):
            if mount not in own and _OURS.fullmatch(mount.get("name") or ""):
                yield (
                    f"{container.field}.volumeMounts[{i}].name: wanted a volume that is not "
                    f"gpupool's own, found {mount['name']}"
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
        *(m for m in container.spec.get("volumeMounts") or () if not _is_at_our_place(m)),
        # The limiter gives no memory unless this is the one mount there, and read-only.
        {"name": limits, "mountPath": LIMITS_DIRECTORY, "readOnly": True},
        {"name": region, "mountPath": REGION_DIRECTORY},
    ]


def _is_own(mount: Obj, container: PodContainer, numbers: dict[str, int]) -> bool:
    """Whether admission added the mount to this container: a pod may pass admission more than
    once."""
    number = numbers.get(container.field)
    if number is None or not is_shared(container) or not _is_at_our_place(mount):
        return False
    return mount.get("name") in (f"{_LIMITS}{number}", f"{_REGION}{number}")


def _is_at_our_place(mount: Obj) -> bool:
    name, place = mount.get("name") or "", cleaned(mount.get("mountPath") or "")
    return (name.startswith(_LIMITS) and place == LIMITS_DIRECTORY) or (
        name.startswith(_REGION) and place == REGION_DIRECTORY
    )
