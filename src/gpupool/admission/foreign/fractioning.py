"""The words of gpu-fractioning: annotations with the name of the container in their key.

It has a request, which is guaranteed, and a limit, up to which a container may grow while others
leave the memory free. We have one share for both, so both must be the same.
"""

from gpupool.admission.asked import containers
from gpupool.admission.foreign.wishes import Reading, Wish, annotations_of, listed
from gpupool.contract.names import PREFIX_NVIDIA_CONTAINER, RESOURCE_GPU
from kubeclient.objects import Obj
from kubeclient.quantity import ParseError, parse, value

LIMIT, REQUEST = ".gpu-memory.limit", ".gpu-memory.request"
_MODE, _PORTION = ".gpu-compute.mode", ".gpu-compute.portion"
_ALIKE = "time-slicing"  # the mode that our shares have, too
_MIB = 2**20


def read(pod: Obj) -> Reading:
    found = Reading()
    annotations = annotations_of(pod)
    unread = {key for key in annotations if _is_memory(key)}
    for container in containers(pod):
        prefix = f"{PREFIX_NVIDIA_CONTAINER}{container.spec.get('name')}"
        used = [prefix + each for each in (LIMIT, REQUEST) if prefix + each in unread]
        if not used:
            continue
        unread.difference_update(used)
        field = f"metadata.annotations[{used[0]}]"
        mib = _memory(annotations, prefix)
        if isinstance(mib, str):
            found.wrong.append(mib)
        elif container.asks(RESOURCE_GPU):
            found.wrong.append(f"{field}: wanted a share or whole cards, found both")
        else:
            said = listed((key, annotations[key]) for key in used)
            found.wishes.append(Wish(container, field, said, mib=mib))
            found.annotations += [*used, prefix + _MODE]
    found.wrong += [
        f"metadata.annotations[{key}]: wanted the name of a container of the pod, found none"
        for key in sorted(unread)
    ]
    return found


def _is_memory(key: str) -> bool:
    return key.startswith(PREFIX_NVIDIA_CONTAINER) and key.endswith((LIMIT, REQUEST))


def _memory(annotations: Obj, prefix: str) -> int | str:
    """In MiB, rounded up; or what is wrong."""
    limit, request = annotations.get(prefix + LIMIT), annotations.get(prefix + REQUEST)
    field = f"metadata.annotations[{prefix}{LIMIT}]"
    if limit is None:
        return f"{field}: wanted a limit, because shares are held to one here, found none"
    mib = _mib(limit)
    if mib is None:
        return f"{field}: wanted an amount of memory such as 4Gi, found {limit}"
    if request is not None and _mib(request) != mib:
        return (
            f"metadata.annotations[{prefix}{REQUEST}]: wanted {limit} as in the limit, because a "
            f"share does not grow by itself here, found {request}"
        )
    for key, harmless in ((prefix + _MODE, _ALIKE), (prefix + _PORTION, None)):
        if annotations.get(key, harmless) != harmless:
            return (
                f"metadata.annotations[{key}]: wanted {harmless or 'none'}, because gpupool has "
                f"nothing like it, found {annotations[key]}"
            )
    return mib


def _mib(text: str) -> int | None:
    try:
        size = value(parse(text))
    except ParseError:
        return None
    return -(-size // _MIB) if size > 0 else None
