"""Clusters without room, and jobs that wait for it."""

from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.node_state import Held
from gpupool.engine.reservation import Waiting
from tests.engine.building import POLICY, cluster_of, gpu_node, whole


def full_cluster(*sizes: int) -> ClusterModel:
    """Every card of these nodes is held by a pod of its own."""
    cluster = cluster_of(*(gpu_node(f"n{at}", size) for at, size in enumerate(sizes)))
    for at in range(sum(sizes)):
        found = decide(cluster, whole(f"run-{at}"), POLICY)
        assert isinstance(found, Placement)
        cluster.hold(whole(f"run-{at}"), *found)
    return cluster


def waiting(name: str, cards: int = 1, since_s: float = 0, members: int = 1) -> Waiting:
    pods = tuple(whole(f"{name}-{at}", cards) for at in range(members))
    return Waiting(name, pods, since_s)


def soon(_held: Held, _of: int) -> float:
    return 10.0
