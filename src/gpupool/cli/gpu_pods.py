"""Pods and their cards, as a table: where each runs, with how much, isolated or not."""

from collections.abc import Iterable, Iterator

from gpupool.cli.table import table
from gpupool.contract.allocation import BadAllocation, allocation_of
from gpupool.contract.names import ANNOTATION_ALLOCATION
from gpupool.core.gpu import CardShare, ContainerGpus, Isolation
from kubeclient.objects import Obj

HEAD = ("POD", "CONTAINER", "STATUS", "NODE", "CARD", "MEMORY", "COMPUTE", "ISOLATION")
_WORDS = {
    Isolation.LIMIT: "held to its share",
    Isolation.NONE: "shared, none",
    Isolation.WHOLE: "whole card",
}


def pods_table(pods: Iterable[Obj], *, with_namespace: bool) -> str:
    """Empty when none has a card."""
    rows = [row for pod in pods for row in _rows(pod, with_namespace=with_namespace)]
    return table(HEAD, rows) if rows else ""


def _rows(pod: Obj, *, with_namespace: bool) -> Iterator[tuple[str, ...]]:
    metadata = pod["metadata"]
    text = (metadata.get("annotations") or {}).get(ANNOTATION_ALLOCATION)
    if not text:
        return
    name = f"{metadata['namespace']}/{metadata['name']}" if with_namespace else metadata["name"]
    phase = (pod.get("status") or {}).get("phase", "")
    status = "Terminating" if "deletionTimestamp" in metadata else phase
    node = pod["spec"].get("nodeName", "")
    try:
        allocation = allocation_of(text)
    except BadAllocation as error:
        yield name, "", status, node, "", "", "", f"damaged: {error}"
        return
    for gpus in allocation.containers:
        for share in gpus.shares:
            yield name, gpus.container, status, node, *_share(gpus, share)


def _share(gpus: ContainerGpus, share: CardShare) -> tuple[str, ...]:
    memory = f"{share.memory_mib}MiB ({share.units} of {share.card_units} GiB)"
    compute = f"{share.percent}%" if share.percent else ""
    return str(share.index), memory, compute, _WORDS[gpus.isolation]
