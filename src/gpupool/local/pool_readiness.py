"""Asks a running cluster for its node pools until all their nodes are ready."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from gpupool.local.server_process import ask_server
from kubeclient.objects import Obj
from localkube.kubeconfig import read_token

_POOLS = "/apis/gpupool.io/v1alpha1/nodepools"
_ONE_NODE = "/api/v1/nodes?limit=1"  # the answer says how many more there are
_LOOK_AGAIN_S = 0.1
_ANSWER_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Pools:
    found: list[Obj]

    @property
    def waiting(self) -> list[str]:
        """The names of pools whose nodes are not all ready."""
        return [pool["metadata"]["name"] for pool in self.found if not _is_settled(pool)]

    @property
    def ready(self) -> int:
        """How many nodes are ready."""
        return sum(pool.get("status", {}).get("readyNodes", 0) for pool in self.found)

    @property
    def wanted(self) -> int:
        """How many nodes the pools are to have."""
        return sum(pool["spec"].get("count", 0) for pool in self.found)


def _is_settled(pool: Obj) -> bool:
    """A pool that was active once stays active, in a cluster that is started again, too: so its
    nodes count as well."""
    status = pool.get("status", {})
    if status.get("phase") != "Active":
        return False
    return bool(status.get("readyNodes", 0) >= pool["spec"].get("count", 0))


def pools_when_ready(directory: Path, port: int, *, patience_s: float) -> Pools | None:
    """The pools once all are active, or as they are after `patience_s`. None when the cluster does
    not answer. `directory` is the cluster's, with its kubeconfig and authority."""
    deadline = time.monotonic() + patience_s
    while True:
        pools = _pools(directory, port)
        if pools is None or not pools.waiting or time.monotonic() > deadline:
            return pools
        time.sleep(_LOOK_AGAIN_S)


def pools_as_they_come(
    directory: Path,
    port: int,
    *,
    stall_s: float,
    limit_s: float,
    tell: Callable[[Pools, int], None],
) -> Pools | None:
    """The pools once all are active, or as they are when nothing has moved for `stall_s`, or after
    `limit_s`: a large cluster takes its time, and one that cannot get ready must not be waited
    for. `tell` hears of each look that found more, with the number of nodes that exist."""
    end = time.monotonic() + limit_s
    pools, most, stalled = None, -1, end
    while time.monotonic() < min(end, stalled):
        # A server that has much to do may be late with an answer; then the last one holds.
        found = _pools(directory, port) or pools
        if found is None or not found.waiting:
            return found
        pools = found
        # Pools count their nodes only now and then: the nodes themselves show progress.
        there = _nodes_there(directory, port)
        if there + pools.ready > most:
            most, stalled = there + pools.ready, time.monotonic() + stall_s
            tell(pools, there)
        time.sleep(_LOOK_AGAIN_S)
    return pools


def _nodes_there(directory: Path, port: int) -> int:
    """0 when the cluster does not answer."""
    document = _asked(directory, port, _ONE_NODE)
    if document is None:
        return 0
    return len(document["items"]) + int(document["metadata"].get("remainingItemCount", 0))


def _pools(directory: Path, port: int) -> Pools | None:
    document = _asked(directory, port, _POOLS)
    return None if document is None else Pools(document["items"])


def _asked(directory: Path, port: int, path: str) -> Obj | None:
    try:
        token = read_token(directory / "kubeconfig")
        answer = ask_server(directory, port, path, token=token, timeout_s=_ANSWER_LIMIT_S)
        return None if answer is None else cast(Obj, json.loads(answer))
    except (OSError, ValueError):
        return None
