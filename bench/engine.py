"""The engine alone: decisions per second while a cluster fills up, an explanation, memory.

CPU time, since the machine may be shared. A decision is count, decide and hold, on one core.
"""

import random
import resource
import statistics
import time
from typing import Any

from gpupool.core.gpu import Card, GpuAsk, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.explain import explain
from gpupool.engine.packing import Packing
from gpupool.engine.policies import DEFAULT

NODES = (1_213, 5_000, 15_000)
CARDS = 8
CARD_UNITS = 80
MOST_PODS = 20_000  # of one run, after which the rest of the cluster would say the same
_GIB = 2**30
_SLICE = 500
_SHOWN = 50  # nodes that `gpupool explain` lists
# (share of pods, whole cards, units, CPU in thousandths, GiB): a mix as clusters have it.
_MIX = (
    (25, 0, 8, 2_000, 8),
    (20, 0, 16, 4_000, 16),
    (15, 0, 40, 6_000, 32),
    (10, 0, 65, 8_000, 48),
    (15, 1, 0, 8_000, 64),
    (5, 2, 0, 16_000, 128),
    (5, 4, 0, 32_000, 256),
    (5, 8, 0, 64_000, 512),
)


def measure_engine() -> dict[str, Any]:
    found: dict[str, Any] = {"policy": DEFAULT, "sizes": []}
    for nodes in NODES:
        figures: dict[str, Any] = {"nodes": nodes}
        for kind, mix in (("whole", _MIX[4:]), ("shared", _MIX[:4]), ("mixed", _MIX)):
            cluster = filled = _cluster(nodes)
            figures[kind] = _fill(cluster, Packing(DEFAULT), mix)
        figures["explain_ms"] = _explain_ms(filled)
        found["sizes"].append(figures)
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return found


def _cluster(nodes: int) -> ClusterModel:
    cluster = ClusterModel()
    allocatable = {"cpu": 128_000, "memory": 1024 * _GIB, "pods": 110}
    for number in range(nodes):
        cards = tuple(
            Card(index, f"GPU-{number}-{index}", "A100", CARD_UNITS * 1024)
            for index in range(CARDS)
        )
        cluster.set_node(
            NodeInfo(f"n{number:05}", allocatable=allocatable, inventory=Inventory(cards))
        )
    return cluster


def _fill(
    cluster: ClusterModel, packing: Packing, mix: tuple[tuple[int, ...], ...]
) -> dict[str, float]:
    """Pods until the cluster's cards are all asked for; those that fit nowhere count as well."""
    pods = _pods(mix, len(cluster) * CARDS * CARD_UNITS)
    packing = Packing(DEFAULT)
    placed, took = 0, []
    for first in range(0, len(pods), _SLICE):
        part = pods[first : first + _SLICE]
        began = time.process_time()
        for pod in part:
            packing.count(cluster, pod)
            decision = decide(cluster, pod, packing.policy)
            if isinstance(decision, Placement):
                cluster.hold(pod, decision.node, decision.allocation)
                placed += 1
        took.append((time.process_time() - began) / len(part))
    return {
        "decisions": len(pods),
        "placed": placed,
        "per_second": 1 / statistics.median(took),
        "best_per_second": 1 / min(took),  # as on a machine that nobody else uses
    }


def _pods(mix: tuple[tuple[int, ...], ...], units: int) -> list[PodRequest]:
    choose = random.Random(0)
    found: list[PodRequest] = []
    while units > 0 and len(found) < MOST_PODS:
        _, whole, share, cpu, memory = choose.choices(mix, [kind[0] for kind in mix])[0]
        ask = GpuAsk("main", whole=whole) if whole else GpuAsk("main", units=share)
        resources = {"cpu": cpu, "memory": memory * _GIB, "pods": 1}
        uid = f"u{len(found)}"
        found.append(PodRequest(uid, "default", uid, resources, gpus=(ask,)))
        units -= whole * CARD_UNITS or share
    return found


def _explain_ms(cluster: ClusterModel) -> float:
    resources = {"cpu": 1000, "pods": 1}
    impossible = PodRequest("x", "default", "x", resources, gpus=(GpuAsk("main", whole=9),))
    began = time.process_time()
    explain(cluster, impossible).nodes[:_SHOWN]
    return 1000 * (time.process_time() - began)


if __name__ == "__main__":
    for size in measure_engine()["sizes"]:
        print(size)
