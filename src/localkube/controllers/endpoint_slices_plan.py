"""Which endpoint goes into which EndpointSlice. Pure.

An endpoint stays in the slice that it is in. If all were sorted anew, one pod among hundreds that
comes or goes would shift the others, and between two writes some would be in no slice at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kubeclient.objects import Obj

SLICE_LIMIT = 100
Ports: TypeAlias = tuple[tuple[str, str, int], ...]  # name, protocol, number


@dataclass(slots=True)
class Slice:
    known: Obj | None  # as it is; None: to be created
    ports: Ports
    endpoints: list[Obj] = field(default_factory=list)


def arranged(
    known: Sequence[Obj], groups: Mapping[Ports, Sequence[Obj]]
) -> tuple[list[Slice], list[Obj]]:
    """The slices as they should be, new ones first, and those of `known` that are too many."""
    left = {ports: {_pod(each): each for each in found} for ports, found in groups.items()}
    kept: list[Slice] = []
    free: list[Obj] = []
    for each in known:
        made = Slice(each, _ports(each))
        waiting = left.get(made.ports, {})
        for endpoint in each.get("endpoints") or ():
            fresh = waiting.pop(_pod(endpoint), None)
            if fresh is not None:
                made.endpoints.append(fresh)
        if made.endpoints and len(made.endpoints) <= SLICE_LIMIT:
            kept.append(made)
        else:
            waiting |= {_pod(endpoint): endpoint for endpoint in made.endpoints}
            free.append(each)
    created = _placed(kept, free, left)
    if not kept and not created:
        # One stays, or comes, that says that there is nothing.
        created.append(Slice(free.pop(0) if free else None, ()))
    return [*created, *kept], free


def _placed(
    kept: Sequence[Slice], free: list[Obj], left: Mapping[Ports, Mapping[str, Obj]]
) -> list[Slice]:
    """Puts what is left where there is room; returns the further slices that it takes."""
    further: list[Slice] = []
    for ports, waiting in sorted(left.items()):
        endpoints = list(waiting.values())
        for each in kept:
            if each.ports == ports:
                room = SLICE_LIMIT - len(each.endpoints)
                each.endpoints += endpoints[:room]
                del endpoints[:room]
        for start in range(0, len(endpoints), SLICE_LIMIT):
            part = endpoints[start : start + SLICE_LIMIT]
            further.append(Slice(free.pop(0) if free else None, ports, part))
    return further


def _ports(endpoint_slice: Obj) -> Ports:
    return tuple(
        (port.get("name") or "", port.get("protocol", "TCP"), port.get("port") or 0)
        for port in endpoint_slice.get("ports") or ()
    )


def _pod(endpoint: Obj) -> str:
    return str((endpoint.get("targetRef") or {}).get("uid", ""))
