"""Autoscaling of node pools: pods that wait for room make a pool grow that may; nodes that stand
empty for long make it shrink again, never below its minimum.

Growing is asked of the pool (spec.count), so quotas and draining stay where they are.
"""

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

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
from gpupool.localcluster.controllers.pods import parse_time
from gpupool.localcluster.controllers.run import Context, Controller, Watch

IDLE = datetime.timedelta(minutes=10)
_LOOK_EVERY_S = 30.0
# So long a new node may take to be ready; its pods are still waiting for it.
_GETS_READY = datetime.timedelta(minutes=2)
_UNREADY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_BY_NODE, _BY_POOL, _WAITING = "node", "pool", "waiting"


def controller(spec: ClusterSpec, versions: Versions) -> Controller:
    idle_since: dict[str, datetime.datetime] = {}
    fleet = _Fleet(spec, versions)

    async def reconcile(key: Key, context: Context) -> float | None:
        nodepool = context.of(NODE_POOLS).get(key[1])
        if nodepool is None or "deletionTimestamp" in nodepool["metadata"]:
            return None
        pool = pool_of(nodepool, spec)
        if not isinstance(pool, PoolSpec) or pool.autoscaling is None:
            return None
        wanted = _wanted(pool, context, fleet, idle_since)
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
    context.of(NODES).add_index(_BY_POOL, lambda node: [pool_name(node)])
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
    fleet: "_Fleet",
    idle_since: dict[str, datetime.datetime],
) -> int:
    assert pool.autoscaling is not None
    least, most = pool.autoscaling.minimum, pool.autoscaling.maximum
    fresh = fleet.empty_node(pool)
    waiting = [
        request
        for request in map(pod_request, context.of(PODS).by(_WAITING, "yes"))
        if not request.unsupported and not first_refusal(request, fresh())
    ]
    more = _nodes_needed(waiting, fleet.room(context), fresh, most - pool.count) if waiting else 0
    idle = 0 if waiting else _long_idle(_nodes(pool, context), context, idle_since)
    return max(least, min(most, pool.count + more - idle))


def _nodes(pool: PoolSpec, context: Context) -> list[Obj]:
    return context.of(NODES).by(_BY_POOL, pool.name)


@dataclass(frozen=True, slots=True)
class _Fleet:
    spec: ClusterSpec
    versions: Versions

    def empty_node(self, pool: PoolSpec) -> Callable[[], Usage]:
        return _empty_node(pool, self.spec, self.versions)

    def room(self, context: Context) -> list[Usage]:
        """The nodes of all elastic pools, also those that are asked for and not there yet: a pod
        that they can take needs no further one, only a little patience."""
        found: list[Usage] = []
        for nodepool in context.of(NODE_POOLS):
            pool = pool_of(nodepool, self.spec)
            if not isinstance(pool, PoolSpec) or pool.autoscaling is None:
                continue
            nodes = _nodes(pool, context)
            found += [_usage(node, context) for node in nodes]
            fresh = self.empty_node(pool)
            found += [fresh() for _ in range(pool.count - len(nodes))]
        return found


def _usage(node: Obj, context: Context) -> Usage:
    usage = Usage(node_of(node))
    born = parse_time(node["metadata"]["creationTimestamp"])
    if context.now() - born < _GETS_READY:
        taints = tuple(taint for taint in usage.node.taints if taint.key not in _UNREADY)
        usage.node = replace(usage.node, taints=taints)
    for pod in context.of(PODS).by(_BY_NODE, usage.node.name):
        if must_go(pod):
            usage.hold(pod_request(pod))
    return usage


def _nodes_needed(
    waiting: list[PodRequest], room: list[Usage], empty_node: Callable[[], Usage], limit: int
) -> int:
    """First fit of the waiting pods: into the room that there is, then onto further nodes."""
    places, added = list(room), 0
    for pod in waiting:
        place = next((usage for usage in places if not first_refusal(pod, usage)), None)
        if place is None:
            if added >= limit:
                continue
            place = empty_node()
            if first_refusal(pod, place):
                continue
            places.append(place)
            added += 1
        place.hold(pod)
    return added


def _long_idle(nodes: list[Obj], context: Context, idle_since: dict[str, datetime.datetime]) -> int:
    now, count = context.now(), 0
    for node in nodes:
        name = node["metadata"]["name"]
        if any(must_go(pod) for pod in context.of(PODS).by(_BY_NODE, name)):
            idle_since.pop(name, None)
        elif now - idle_since.setdefault(name, now) >= IDLE:
            count += 1
    return count
