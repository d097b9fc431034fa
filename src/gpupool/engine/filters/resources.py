"""CPU, memory, number of pods and every other resource of the node's allocatable."""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import MOST, UNKNOWN, Bools, Columns
from gpupool.engine.filters.filter import Filter, Refused
from gpupool.engine.policies.policy import Ints, of_nodes

TOO_MANY_PODS = "Too many pods"


def wanted(pod: PodRequest) -> dict[str, int]:
    """Requests of 0 are ignored, as in kube-scheduler."""
    return {name: amount for name, amount in pod.resources.items() if amount > 0}


def need_of(pod: PodRequest, columns: Columns) -> Ints:
    """(R, 1), to compare with `Columns.free`. An amount above MOST fits on no node."""
    need = np.zeros((len(columns.free), 1), dtype=np.int64)
    for name, amount in wanted(pod).items():
        # A resource that no node has leads to row 0, where nothing is free.
        need[columns.resource_rows.get(name, UNKNOWN)] = min(amount, MOST + 1)
    return need


def needs_in(need: Ints) -> list[tuple[int, int]]:
    """(row, amount) of every resource that is needed."""
    return [(row, amount) for row, amount in enumerate(need[:, 0].tolist()) if amount]


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    return has_room(cluster.columns, need_of(pod, cluster.columns), nodes)


def has_room(columns: Columns, need: Ints, nodes: Ints) -> Bools:
    return np.asarray(np.logical_and.reduce(of_nodes(columns.free, nodes) >= need))


def refusals(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> list[Refused]:
    """A reason for each resource of which there is too little."""
    columns = cluster.columns
    found = []
    for name, amount in wanted(pod).items():
        row = columns.resource_rows.get(name, UNKNOWN)
        least = min(amount, MOST + 1)
        short = nodes[columns.free[row, nodes] < least]
        if not len(short):
            continue
        reason = reason_of(name)
        # Where the node has less in all, no eviction helps: preemption must not try it.
        ever = columns.offered[row, short] >= least
        found += [
            Refused(reason, part, curable)
            for part, curable in ((short[ever], True), (short[~ever], False))
            if len(part)
        ]
    return found


def reason_of(resource: str) -> str:
    return TOO_MANY_PODS if resource == "pods" else f"Insufficient {resource}"


RESOURCES = Filter(passes, refusals)
