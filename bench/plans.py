"""What `gpupool whatif` and `gpupool defrag` compute: 5,000 nodes of eight cards, 20,000 pods.

CPU time of one answer; reading the cluster from the API server is not in it. `what_if` uses its
state up, so every question gets a state of its own.

    python -m bench.plans
"""

import statistics
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from bench.collector import as_in_the_command
from gpupool.contract.pods import pod_request
from gpupool.core.gpu import Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.decide import Placement, decide_on
from gpupool.engine.defrag import Plan, Rules, larger_job, room_for
from gpupool.engine.policies import DEFAULT
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.what_if import Answer, Question, Workload, what_if

NODES, CARDS, PODS = 5_000, 8, 20_000
WHATIF_MS, PLAN_MS = 200.0, 5_000.0  # the aims
_ON_EACH = 5  # pods of one card on a node; the other nodes are full
_TIMES = 3
_MOVES = 10
_GIB = 2**30
_NAMES = count()


def measure_plans(nodes: int = NODES, pods: int = PODS, times: int = _TIMES) -> dict[str, Any]:
    questions: dict[str, tuple[Callable[[ClusterState], object], float]] = {
        "whatif: 10 pods with a card": (lambda state: _ask(state, 1, 10), WHATIF_MS),
        "whatif: 10 pods with 8 cards, which need nodes": (
            lambda state: _ask(state, CARDS, 10),
            WHATIF_MS,
        ),
        "defrag: room for 2 pods with 8 cards, 10 moves": (_room_for_two, PLAN_MS),
        "defrag: a larger job, up to 10 moves": (_larger, PLAN_MS),
    }
    rows = []
    for what, (question, aim_ms) in questions.items():
        with as_in_the_command():
            took = [_timed(question, _state(nodes, pods)) for _ in range(times)]
        figures = {"median_ms": statistics.median(took), "most_ms": max(took), "aim_ms": aim_ms}
        rows.append({"what": what, "times": times, **figures})
    return {"nodes": nodes, "pods": pods, "rows": rows}


def _state(nodes: int, pods: int) -> ClusterState:
    state = ClusterState(frozenset(), DEFAULT, lambda: None, time.monotonic)
    offered = {"cpu": 128_000, "memory": 1024 * _GIB, "pods": 110, "nvidia.com/gpu": CARDS}
    for number in range(nodes):
        cards = tuple(Card(at, f"GPU-{number}-{at}", "A100", 81_920) for at in range(CARDS))
        labels = {"node.gpupool.io/pool": f"pool-{number % 4}"}
        state.cluster.set_node(
            NodeInfo(f"n{number}", labels, allocatable=offered, inventory=Inventory(cards))
        )
    shared = pods // _ON_EACH
    for number in range(pods):
        _hold(state, _pod(1), f"n{number % shared}")
    for number in range(shared, nodes):
        _hold(state, _pod(CARDS), f"n{number}")
    return state


def _hold(state: ClusterState, pod: PodRequest, node: str) -> None:
    found = decide_on(state.cluster, pod, state.policy, (node,))
    assert isinstance(found, Placement), f"no room on {node}"
    state.cluster.hold(pod, found.node, found.allocation)


def _pod(cards: int) -> PodRequest:
    name = f"p{next(_NAMES)}"
    asked = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": str(cards)}
    container = {"name": "c", "resources": {"requests": asked, "limits": asked}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return pod_request({"metadata": metadata, "spec": {"containers": [container]}})


def _timed(question: Callable[[ClusterState], object], state: ClusterState) -> float:
    began_s = time.process_time()
    question(state)
    return 1000 * (time.process_time() - began_s)


def _ask(state: ClusterState, cards: int, copies: int) -> Answer:
    workload = Workload("Deployment", "default", "asked", _pod(cards), copies)
    answer = what_if(state, Question((workload,)))
    assert answer.all_fit or answer.additions
    return answer


def _room_for_two(state: ClusterState) -> None:
    pods = [_pod(CARDS) for _ in range(2)]
    found = room_for(state.cluster, pods, state.policy, Rules(_MOVES))
    assert isinstance(found, Plan)
    assert len(found.moves) == _MOVES


def _larger(state: ClusterState) -> None:
    assert larger_job(state.cluster, state.policy, Rules(_MOVES)) is not None


def plan_rows(figures: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"{row['what']}, {figures['nodes']:,} nodes, CPU",
            f"{row['median_ms']:.0f} ms, most {row['most_ms']:.0f} ms",
            f"{row['aim_ms']:,.0f} ms",
            "",
        )
        for row in figures["rows"]
    ]


if __name__ == "__main__":
    for line in plan_rows(measure_plans()):
        print(f"{line[0]:80} {line[1]}")
