"""What pods have requested of a node, as the scheduler counts it."""

from typing import NamedTuple

from gpupool.engine.cluster import ClusterModel


class NodeUse(NamedTuple):
    cpu_milli: int
    memory_bytes: int
    pods: int


def node_use(cluster: ClusterModel, name: str) -> NodeUse | None:
    """None: the scheduler does not know the node yet."""
    state = cluster.state(name)
    if state is None:
        return None
    held = state.held
    pods = sum(not each.reserved for each in state.pods.values())
    return NodeUse(held.get("cpu", 0), held.get("memory", 0), pods)


def cores(milli: int) -> str:
    """As people say it: 0.5, 8."""
    return f"{milli / 1000:g}" if milli < 100_000 else f"{milli // 1000}"


def gib(size: int) -> str:
    amount = size / 2**30
    return f"{amount:.1f}".removesuffix(".0") if amount < 100 else f"{amount:.0f}"
