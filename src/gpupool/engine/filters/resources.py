"""CPU, memory, number of pods and every other resource that nodes count."""

import numpy as np

from gpupool.core.request import PodRequest
from gpupool.engine.cluster import Cluster
from gpupool.engine.columns import MOST, Bools
from gpupool.engine.filters.filter import Filter, Refused
from gpupool.engine.policies.policy import Ints

TOO_MANY_PODS = "Too many pods"


def wanted(pod: PodRequest) -> dict[str, int]:
    """What it asks nothing of is not looked at, as in kube-scheduler."""
    return {name: amount for name, amount in pod.resources.items() if amount > 0}


def amounts_column(amounts: dict[str, int]) -> Ints:
    """(k, 1), to compare with rows of nodes. Too large for a column is more than any node has."""
    bounded = [[min(amount, MOST + 1)] for amount in amounts.values()]
    return np.array(bounded, dtype=np.int64).reshape(-1, 1)


def passes(pod: PodRequest, cluster: Cluster, nodes: Ints) -> Bools:
    asked = wanted(pod)
    return has_room(cluster, cluster.columns.rows(asked), amounts_column(asked), nodes)


def has_room(cluster: Cluster, rows: Ints, amounts: Ints, nodes: Ints) -> Bools:
    return np.asarray((cluster.columns.free[rows[:, None], nodes] >= amounts).all(axis=0))


def refusals(pod: PodRequest, cluster: Cluster, nodes: Ints) -> list[Refused]:
    """A reason for each resource of which there is too little."""
    asked = wanted(pod)
    columns = cluster.columns
    rows, amounts = columns.rows(asked), amounts_column(asked)
    lacking = columns.free[rows[:, None], nodes] < amounts
    found = []
    for at, name in enumerate(asked):
        short = nodes[lacking[at]]
        if not len(short):
            continue
        reason = TOO_MANY_PODS if name == "pods" else f"Insufficient {name}"
        ever = np.array(
            [cluster.at(int(n)).node.allocatable.get(name, 0) >= asked[name] for n in short],
            dtype=np.bool_,
        )
        found += [
            Refused(reason, part, curable)
            for part, curable in ((short[ever], True), (short[~ever], False))
            if len(part)
        ]
    return found


RESOURCES = Filter(passes, refusals)
