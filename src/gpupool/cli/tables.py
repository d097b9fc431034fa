"""Tables as kubectl prints them: plain text, easy to cut and grep."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpupool.core.gpu import CardShare, ContainerGpus
    from kubeclient.objects import Obj

_PODS_HEAD = ("POD", "CONTAINER", "STATUS", "NODE", "CARD", "MEMORY", "COMPUTE", "ISOLATION")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )


def pods_table(pods: "Iterable[Obj]", *, with_namespace: bool) -> str:
    """One row for each card that a container has; empty when no pod has a card."""
    rows = [row for pod in pods for row in _pod_rows(pod, with_namespace=with_namespace)]
    return table(_PODS_HEAD, rows) if rows else ""


def _pod_rows(pod: "Obj", *, with_namespace: bool) -> Iterator[tuple[str, ...]]:
    from gpupool.contract.gpu_asks import gpu_asks
    from gpupool.contract.held_allocation import held_allocation

    metadata = pod["metadata"]
    if not pod["spec"].get("nodeName"):
        return
    allocation = held_allocation(pod, gpu_asks(pod).asks)
    name = f"{metadata['namespace']}/{metadata['name']}" if with_namespace else metadata["name"]
    phase = (pod.get("status") or {}).get("phase", "")
    status = "Terminating" if "deletionTimestamp" in metadata else phase
    node = pod["spec"].get("nodeName", "")
    if allocation.unread is not None and phase not in ("Succeeded", "Failed"):
        card = ",".join(map(str, sorted(allocation.unread.indexes)))
        yield name, "", status, node, card, "", "", f"unknown: {allocation.unread.why}"
    for gpus in allocation.containers:
        for share in gpus.shares:
            yield name, gpus.container, status, node, *_share(gpus, share)


def _share(gpus: "ContainerGpus", share: "CardShare") -> tuple[str, ...]:
    memory = f"{share.memory_mib}MiB ({share.units} of {share.card_units} GiB)"
    compute = f"{share.percent}%" if share.percent else ""
    return str(share.index), memory, compute, gpus.isolation.words
