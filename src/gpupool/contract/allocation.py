"""Allocation <-> the pod annotations that the scheduler writes with the Binding.

One structured annotation has everything, and our own programs read only that one. The others repeat
parts of it as plain text, because the downward API can only put whole annotations into a
container's environment or limit file. They have one key per container, each in an API group of its
own, because a container name may be as long as the name part of a key.
"""

import functools

import msgspec

from gpupool.contract.documents import CardUuid, Mib, Number, Percent, Units, document_of
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_MEM_ASSIGNED,
    ANNOTATION_MEM_ASSUME_TIME,
    ANNOTATION_MEM_DEV,
    ANNOTATION_MEM_IDX,
    ANNOTATION_MEM_POD,
    GROUP_CARD_UNITS,
    GROUP_DEVICES,
    GROUP_INDEXES,
    GROUP_LIMITS,
    GROUP_MEMORY_LIMIT,
    GROUP_MEMORY_REQUEST,
    GROUP_NO_ISOLATION,
    GROUP_NVIDIA_CDI,
    NVIDIA_CDI_CONTAINER,
)
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from kubeclient.objects import Obj

VERSION = 1
_SHORT = 4096  # longer texts are not kept in memory: anybody may have written them
UNLIMITED = "unlimited\n"  # content of the limit file that turns the limiter off


class BadAllocation(ValueError):
    """The annotation cannot be parsed, or has another version."""


class _Share(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    uuid: CardUuid
    index: Number
    units: Units
    memory_mib: Mib = msgspec.field(name="memoryMiB")
    card_units: Units
    percent: Percent = 0


class _Container(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    cards: tuple[_Share, ...]
    isolation: Isolation
    by_driver: bool = False
    cdi_kind: str = ""


class _Versioned(msgspec.Struct, frozen=True):
    version: int


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    version: int
    containers: dict[str, _Container]


def allocation_annotations(allocation: Allocation, *, now_ns: int) -> dict[str, str]:
    """All annotations of the Binding; empty for a pod without GPUs."""
    if not allocation.containers:
        return {}
    found = {ANNOTATION_ALLOCATION: allocation_text(allocation)}
    for gpus in allocation.containers:
        found |= _of_container(gpus)
    shared = [c for c in allocation.containers if c.isolation is not Isolation.WHOLE]
    if shared:
        # For tools of the gpushare family.
        shares = [share for gpus in shared for share in gpus.shares]
        found |= {
            ANNOTATION_MEM_IDX: _joined(shares),
            ANNOTATION_MEM_POD: str(sum(share.units for share in shares)),
            ANNOTATION_MEM_DEV: str(shares[0].card_units),
            ANNOTATION_MEM_ASSIGNED: "true",
            ANNOTATION_MEM_ASSUME_TIME: str(now_ns),
        }
    return found


def _of_container(gpus: ContainerGpus) -> dict[str, str]:
    name, shares = gpus.container, gpus.shares
    found = {
        f"{GROUP_DEVICES}/{name}": ",".join(share.uuid for share in shares),
        f"{GROUP_INDEXES}/{name}": _joined(shares),
    }
    if gpus.isolation is not Isolation.WHOLE:
        is_off = gpus.isolation is Isolation.NONE
        found |= {
            f"{GROUP_CARD_UNITS}/{name}": str(shares[0].card_units),
            f"{GROUP_NO_ISOLATION}/{name}": "true" if is_off else "false",
            f"{GROUP_LIMITS}/{name}": UNLIMITED if is_off else limits_text(shares),
        }
    return found | _for_the_hook(gpus) | _for_nvidias_plugin(gpus)


def _for_nvidias_plugin(gpus: ContainerGpus) -> dict[str, str]:
    """Which cards NVIDIA's NRI plugin puts into the container. It reads the pod's annotations when
    the container is made, and the Binding has brought them by then."""
    if not gpus.cdi_kind:
        return {}
    devices = ",".join(f"{gpus.cdi_kind}={share.uuid}" for share in gpus.shares)
    return {f"{GROUP_NVIDIA_CDI}/{NVIDIA_CDI_CONTAINER}{gpus.container}": devices}


def _for_the_hook(gpus: ContainerGpus) -> dict[str, str]:
    """What NVIDIA's runtime hook sets as limits of the driver. It knows one figure for all cards of
    a container, and refuses a container whose variable is empty: where shares differ, it gets the
    smallest and the largest, and the agent sets the limit of each card."""
    if gpus.isolation is not Isolation.LIMIT or not gpus.by_driver:
        return {}
    sizes = [share.memory_mib for share in gpus.shares]
    return {
        f"{GROUP_MEMORY_REQUEST}/{gpus.container}": str(min(sizes)),
        f"{GROUP_MEMORY_LIMIT}/{gpus.container}": str(max(sizes)),
    }


def _joined(shares: tuple[CardShare, ...] | list[CardShare]) -> str:
    return ",".join(dict.fromkeys(str(share.index) for share in shares))


def limits_text(shares: tuple[CardShare, ...]) -> str:
    """The limiter's file: a line for each card, `uuid MiB percent`.

    A card without a line cannot be used, so an empty file allows nothing.
    """
    return "".join(f"{s.uuid} {s.memory_mib} {s.percent}\n" for s in shares)


def allocation_text(allocation: Allocation) -> str:
    containers = {
        gpus.container: _Container(
            tuple(
                _Share(s.uuid, s.index, s.units, s.memory_mib, s.card_units, s.percent)
                for s in gpus.shares
            ),
            gpus.isolation,
            gpus.by_driver,
            gpus.cdi_kind,
        )
        for gpus in allocation.containers
    }
    return msgspec.json.encode(_Document(VERSION, containers)).decode()


def allocation_of(text: str) -> Allocation:
    """Raises BadAllocation."""
    try:
        document = document_of(_DECODER, text, BadAllocation)
    except BadAllocation:
        _check(document_of(_VERSION_DECODER, text, BadAllocation))  # another version, other fields
        raise
    _check(document)
    return Allocation(
        tuple(
            ContainerGpus(
                name,
                tuple(
                    CardShare(s.uuid, s.index, s.units, s.memory_mib, s.card_units, s.percent)
                    for s in container.cards
                ),
                container.isolation,
                container.by_driver,
                container.cdi_kind,
            )
            for name, container in document.containers.items()
        )
    )


def _check(document: _Document | _Versioned) -> None:
    if document.version != VERSION:
        raise BadAllocation(f"version {document.version}; this program reads version {VERSION}")


def pod_allocation(pod: Obj) -> Allocation:
    """What the pod's annotation tells. Whoever gives out cards asks `held_allocation`."""
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ALLOCATION)
    if not text:
        return Allocation()
    return _read_once(text) if len(text) <= _SHORT else _read(text)


def _read(text: str) -> Allocation:
    try:
        return allocation_of(text)
    except BadAllocation:
        return Allocation()


# An agent looks at all pods of its node several times in a few seconds.
_read_once = functools.lru_cache(maxsize=512)(_read)


_VERSION_DECODER = msgspec.json.Decoder(_Versioned)
_DECODER = msgspec.json.Decoder(_Document)
