"""Short constructors of nodes, pods and clusters."""

from typing import Any

from gpupool.core.gpu import Allocation, Card, GpuAsk, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, Unschedulable, decide
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix

POLICY = POLICIES["best-fit"](Mix())
V100_MIB = 16130  # 15 units
ROOMY = {"cpu": 64_000, "memory": 2**40, "pods": 110}


def cards(node: str, count: int, mib: int = V100_MIB, **more: Any) -> Inventory:
    return Inventory(tuple(Card(at, f"{node}-{at}", "V100", mib, **more) for at in range(count)))


def gpu_node(name: str = "n", count: int = 2, **more: Any) -> NodeInfo:
    return NodeInfo(name, **{"allocatable": ROOMY, "inventory": cards(name, count), **more})


def cluster_of(*nodes: NodeInfo) -> ClusterModel:
    made = ClusterModel()
    for each in nodes:
        made.set_node(each)
    return made


def gpu_pod(uid: str = "u", *asks: GpuAsk, **more: Any) -> PodRequest:
    resources = more.pop("resources", {"cpu": 1000, "pods": 1})
    return PodRequest(uid, "default", f"p-{uid}", resources, gpus=asks, **more)


def shared(uid: str, units: int, cards: int = 1, percent: int = 0, **more: Any) -> PodRequest:
    return gpu_pod(uid, GpuAsk("c", units=units, cards=cards, percent=percent), **more)


def whole(uid: str, count: int = 1, **more: Any) -> PodRequest:
    return gpu_pod(uid, GpuAsk("c", whole=count), **more)


def place(cluster: ClusterModel, pod: PodRequest) -> Allocation | str:
    """Decide and hold; or the message why not."""
    decision = decide(cluster, pod, POLICY)
    match decision:
        case Placement():
            cluster.hold(pod, decision.node, decision.allocation)
            return decision.allocation
        case Unschedulable():
            return decision.message


def indexes(given: Allocation | str) -> list[int]:
    assert isinstance(given, Allocation), given
    return [share.index for gpus in given.containers for share in gpus.shares]
