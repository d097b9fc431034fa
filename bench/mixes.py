"""The engine on real mixes of pods: decisions per second while clusters of three sizes fill up, and
while pods come and go on one of 5,000 nodes.

The traces are openb's, where they are (see `packing.py`), else a synthetic one. Larger clusters are
openb's machines repeated, with as many more pods. CPU time of one core, since the machine may be
shared; a decision is count, decide and hold, and under churn release. The digest is that of all
placements, for a comparison with other code.

    python -m bench.mixes short                      a few seconds
    python -m bench.mixes gpuspec33 5000 churn       this one; any of trace, nodes, method
    python -m bench.mixes gpuspec33 fgd              another policy
"""

import hashlib
import statistics
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count, islice
from typing import Any

from bench.collector import as_in_the_command
from bench.packing import WORKLOADS, openb_traces
from gpupool.core.nodes import NodeInfo
from gpupool.engine.decide import Placement, Unschedulable, decide
from gpupool.engine.policies import DEFAULT, POLICIES
from gpupool.replay.arrivals import Arrival, churn, filling
from gpupool.replay.run import Stage
from gpupool.replay.synthetic import synthetic_trace
from gpupool.replay.trace import Trace

NODES = (1_213, 5_000, 15_000)
METHODS = ("filling", "churn")
_LARGE = ("default", "gpuspec33")  # are measured on all sizes, the others on 5,000 nodes
_CHURNED = 5_000  # nodes
_LOAD = 1.0  # under churn
_MOST_ARRIVALS = 60_000  # under churn; by then the cluster is full
_SLICE = 500
_SYNTHETIC_NODES = 1_213


def measure_mixes(
    short: bool = False, only: Collection[str] = (), policy: str = DEFAULT
) -> dict[str, Any]:
    """`only`: names of traces and methods, and numbers of nodes; of each sort none or some."""
    found = openb_traces()
    traces = found or [synthetic_trace(_SYNTHETIC_NODES)]
    with as_in_the_command():
        rows = [
            {"trace": trace.name, "nodes": nodes, "method": method}
            | _run(enlarged(trace, nodes), _order(trace, nodes, method), policy)
            for trace in (traces[-1:] if short else traces)
            for nodes in (NODES[:2] if short else NODES)
            for method in METHODS
            if _is_wanted(trace, nodes, method, only)
        ]
    return {"policy": policy, "synthetic": not found, "rows": rows}


def _is_wanted(trace: Trace, nodes: int, method: str, only: Collection[str]) -> bool:
    name = next((word for word in WORKLOADS if word in trace.name), trace.name)
    if only:
        sorts = (WORKLOADS, tuple(map(str, NODES)), METHODS)
        mine = (name, str(nodes), method)
        return all(m in only or not {*sort} & {*only} for m, sort in zip(mine, sorts, strict=True))
    return nodes == _CHURNED or (method == "filling" and name in _LARGE)


def _order(trace: Trace, nodes: int, method: str) -> Sequence[Arrival]:
    large = enlarged(trace, nodes)
    if method == "filling":
        return filling(large, 0).order
    return list(islice(churn(large, _LOAD, 0).order, _MOST_ARRIVALS))


def enlarged(trace: Trace, nodes: int) -> Trace:
    """The machines of the trace again and again."""
    made: list[NodeInfo] = []
    for copy in count():
        made += [_copied(node, copy) for node in trace.nodes[: nodes - len(made)]]
        if len(made) >= nodes:
            return replace(trace, nodes=tuple(made))
    raise AssertionError


def _copied(node: NodeInfo, copy: int) -> NodeInfo:
    inventory = node.inventory
    if not copy or inventory is None:
        return replace(node, name=f"{node.name}-{copy}")
    cards = tuple(replace(card, uuid=f"{card.uuid}-{copy}") for card in inventory.cards)
    return replace(node, name=f"{node.name}-{copy}", inventory=replace(inventory, cards=cards))


def _run(trace: Trace, order: Sequence[Arrival], policy: str) -> dict[str, Any]:
    """Pods that fit nowhere count as well."""
    stage, digest = Stage(trace, policy), hashlib.sha256()
    cluster, packing = stage.cluster, stage.packing
    took, leaving = [], list[tuple[float, str]]()
    for first in range(0, len(order), _SLICE):
        arrivals = order[first : first + _SLICE]
        part = [
            (replace(trace.pods[arrival.pod].request, uid=str(at)), arrival.leaves, at)
            for at, arrival in enumerate(arrivals, first)
        ]
        placed = []
        began = time.process_time()
        for pod, leaves, at in part:
            while leaving and leaving[0][0] <= at:
                cluster.release(heappop(leaving)[1])
            packing.count(cluster, pod)
            decision = decide(cluster, pod, packing.policy)
            if isinstance(decision, Placement):
                cluster.hold(pod, decision.node, decision.allocation)
                if leaves is not None:
                    heappush(leaving, (leaves, pod.uid))
            placed.append(decision)
        took.append((time.process_time() - began) / len(part))
        digest.update("".join(map(_words, placed)).encode())
    return {
        "decisions": len(order),
        "per_second": 1 / statistics.fmean(took),
        "median_per_second": 1 / statistics.median(took),
        "digest": digest.hexdigest()[:16],
    }


def _words(decision: Placement | Unschedulable) -> str:
    if isinstance(decision, Unschedulable):
        return "-"
    shares = [each for gpus in decision.allocation.containers for each in gpus.shares]
    return f"{decision.node}:{[(each.uuid, each.units) for each in shares]}"


def line(row: dict[str, Any]) -> str:
    return f"{row['per_second']:,.0f}/s, median {row['median_per_second']:,.0f}/s"


if __name__ == "__main__":
    words = sys.argv[1:]
    policy = next((word for word in words if word in POLICIES), DEFAULT)
    only = [word for word in words if word not in ("short", *POLICIES)]
    for row in measure_mixes("short" in words, only, policy)["rows"]:
        print(row["trace"], row["nodes"], row["method"], line(row), row["digest"])
