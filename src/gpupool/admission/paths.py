"""Paths that a pod names in the root of its own containers: none may lead to the limiter's files.

This stops mistakes and simple attempts early, with a message. It cannot be complete: links in
images and volumes, which admission does not see, lead a path anywhere. So the limiter itself checks
on which mount its files are (native/isolation/core/mounts.h), and gives no memory if in doubt.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator

from gpupool.admission.asked import PodContainer, is_shared
from gpupool.contract.names import (
    LIMITER_DIRECTORY,
    LIMITS_DIRECTORY,
    PRELOAD_LIST,
    REGION_DIRECTORY,
)
from kubeclient.objects import Obj

_RESERVED = (LIMITS_DIRECTORY, REGION_DIRECTORY, LIMITER_DIRECTORY, PRELOAD_LIST)
# /proc/PID/root is the root directory, and /dev/fd leads to /proc. The kernel makes these links, so
# they are in every container.
_LINKS = ("/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr")


def path_complaints(container: PodContainer, own: Collection[Obj]) -> Iterator[str]:
    """`own`: mounts that admission itself has added."""
    if not is_shared(container):
        return
    for field, path in _named(container.spec, own):
        found = cleaned(path)
        if _leads_to(found, _RESERVED):
            wanted = "a path that gpupool does not use itself"
        elif field != "workingDir" and _leads_to(LIMITS_DIRECTORY, (found.rstrip("/"),)):
            # The limiter wants its limit file on the root file system of the image.
            wanted = f"a path that does not contain {LIMITS_DIRECTORY}, which gpupool uses itself"
        elif _leads_to(found, _LINKS):
            wanted = (
                "a path that no link of the kernel leads elsewhere "
                f"(none below {', '.join(_LINKS[:2])})"
            )
        else:
            continue
        yield f"{container.field}.{field}: wanted {wanted}, found {path}"


def cleaned(path: str) -> str:
    """The path as the container runtime takes it, in an image without links of its own."""
    # A relative path begins at the root. posixpath keeps two slashes at the beginning, so there is
    # exactly one before it looks.
    found = posixpath.normpath(f"/{path.lstrip('/')}")
    # Images of all distributions have this link.
    return found.removeprefix("/var") if f"{found}/".startswith("/var/run/") else found


def _named(spec: Obj, own: Collection[Obj]) -> Iterator[tuple[str, str]]:
    """Every field of a container that names a path in its root. `subPath` and `subPathExpr` name
    one in a volume. Commands, of probes and hooks too, are programs: the limiter is in them."""
    for i, mount in enumerate(spec.get("volumeMounts") or ()):
        if mount not in own:
            yield f"volumeMounts[{i}].mountPath", mount.get("mountPath") or ""
    for i, device in enumerate(spec.get("volumeDevices") or ()):
        yield f"volumeDevices[{i}].devicePath", device.get("devicePath") or ""
    for name in ("terminationMessagePath", "workingDir"):
        if spec.get(name):
            yield name, spec[name]


def _leads_to(path: str, places: Iterable[str]) -> bool:
    return any(f"{path}/".startswith(f"{place}/") for place in places)
