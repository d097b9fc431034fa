"""Autoscaling of node pools: pods that wait for room make a pool grow that may; nodes that stand
empty for long make it shrink again, never below its minimum.

Growing is asked of the pool (spec.count), so quotas and draining stay where they are.
"""

import datetime
from collections.abc import Callable, Iterable

from gpupool.contract.nodes import node_of
from gpupool.contract.objects import Obj
from gpupool.contract.pods import pod_request
from gpupool.core.request import PodRequest
from gpupool.engine.decide import first_refusal
from gpupool.engine.usage import Usage
from gpupool.kube.events import NORMAL
from gpupool.kube.mirror import Key
from gpupool.kube.resources import NODE_POOLS, NODES, PODS
from gpupool.localcluster.config.nodepools import pool_of
from gpupool.localcluster.config.nodes import Taken, Versions, new_nodes
from gpupool.localcluster.config.spec import ClusterSpec, PoolSpec
from gpupool.localcluster.controllers.drain import must_go
from gpupool.localcluster.controllers.node_pool import pool_name
from gpupool.localcluster.controllers.run import Context, Controller, Watch

IDLE = datetime.timedelta(minutes=10)
_LOOK_EVERY_S = 30.0
_BY_NODE, _WAITING = "node", "waiting"


def controller(spec: ClusterSpec, versions: Versions) -> Controller:
    idle_since: dict[str, datetime.datetime] = {}

    async def reconcile(key: Key, context: Context) -> float | None:
        nodepool = context.of(NODE_POOLS).get(key[1])
        if nodepool is None or "deletionTimestamp" in nodepool["metadata"]:
            return None
        pool = pool_of(nodepool, spec)
        if not isinstance(pool, PoolSpec) or pool.autoscaling is None:
            return None
        wanted = _wanted(pool, context, _empty_node(pool, spec, versions), idle_since)
        if wanted != pool.count:
            text = f"Scaled from {pool.count} to {wanted} nodes"
            context.events.event(nodepool, NORMAL, "Autoscaled", text)
            path = NODE_POOLS.path(name=pool.name)
            await context.kube.patch(path, {"spec": {"count": wanted}})
        return _LOOK_EVERY_S

    return Controller(
        "pool-autoscaler",
        (Watch(NODE_POOLS), Watch(PODS, _all_pools_if_waiting)),
        reconcile,
        reads=(NODES,),
        workers=1,
        prepare=_prepare,
    )


def _prepare(context: Context) -> None:
    context.of(PODS).add_index(_BY_NODE, lambda pod: [pod["spec"].get("nodeName", "")])
    context.of(PODS).add_index(_WAITING, lambda pod: ["yes"] if _is_waiting(pod) else [])


def _is_waiting(pod: Obj) -> bool:
    """The scheduler has said that it fits nowhere."""
    return any(
        c["type"] == "PodScheduled"
        and c["status"] == "False"
        and c.get("reason") == "Unschedulable"
        for c in pod.get("status", {}).get("conditions") or ()
    )


def _all_pools_if_waiting(pod: Obj, context: Context) -> Iterable[Key]:
    if _is_waiting(pod):
        yield from (("", pool["metadata"]["name"]) for pool in context.of(NODE_POOLS))


def _empty_node(pool: PoolSpec, spec: ClusterSpec, versions: Versions) -> Callable[[], Usage]:
    """What one more node of the pool would be."""
    planned = new_nodes(pool, 1, network=spec.network, taken=Taken(), versions=versions)[0]
    return lambda: Usage(node_of(planned))


def _wanted(
    pool: PoolSpec,
    context: Context,
    empty_node: Callable[[], Usage],
    idle_since: dict[str, datetime.datetime],
) -> int:
    assert pool.autoscaling is not None
    nodes = [node for node in context.of(NODES) if pool_name(node) == pool.name]
    least, most = pool.autoscaling.minimum, pool.autoscaling.maximum
    if len(nodes) < pool.count:
        return max(least, min(most, pool.count))  # what was asked for is still on its way
    waiting = [pod_request(pod) for pod in context.of(PODS).by(_WAITING, "yes")]
    more = _nodes_needed(waiting, empty_node, most - pool.count)
    if more:
        return pool.count + more
    idle = _long_idle(nodes, context, idle_since)
    return max(least, min(most, pool.count - (0 if waiting else idle)))


def _nodes_needed(waiting: list[PodRequest], empty_node: Callable[[], Usage], limit: int) -> int:
    """First fit of the waiting pods onto empty nodes of this kind."""
    added: list[Usage] = []
    for pod in waiting:
        place = next((usage for usage in added if not first_refusal(pod, usage)), None)
        if place is None:
            if len(added) >= limit:
                continue
            fresh = empty_node()
            if first_refusal(pod, fresh):
                continue
            added.append(fresh)
            place = fresh
        place.hold(pod)
    return len(added)


def _long_idle(nodes: list[Obj], context: Context, idle_since: dict[str, datetime.datetime]) -> int:
    now, count = context.now(), 0
    for node in nodes:
        name = node["metadata"]["name"]
        if any(must_go(pod) for pod in context.of(PODS).by(_BY_NODE, name)):
            idle_since.pop(name, None)
        elif now - idle_since.setdefault(name, now) >= IDLE:
            count += 1
    return count
