"""The autoscaler of node pools: a pool grows when pods wait for room, and shrinks when nodes have
been empty for long, within its minimum and maximum.

It only sets spec.count; the NodePool controller applies quotas and drains nodes.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpupool.contract.nodes import node_of
from gpupool.contract.pods import pod_request
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.policies import DEFAULT, POLICIES
from gpupool.engine.policies.mix import Mix
from gpupool.local.config.nodepools import NODE_POOLS, pool_of
from gpupool.local.config.nodes import Taken, new_nodes
from gpupool.local.config.spec import ClusterSpec, PoolSpec
from gpupool.local.drain import must_go
from gpupool.local.node_pool import pool_name
from kubeclient.events import NORMAL
from kubeclient.mirror import Key
from kubeclient.names import LABEL_HOSTNAME
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from localkube.controllers.pods import parse_time
from localkube.controllers.run import Context, Controller, Watch

IDLE = datetime.timedelta(minutes=10)
_LOOK_EVERY_S = 30.0
# A new node counts as ready for this long, so that the pods it is for do not ask for another one.
_GETS_READY = datetime.timedelta(minutes=2)
_UNREADY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_POLICY = POLICIES[DEFAULT](Mix())
_BY_NODE, _BY_POOL, _WAITING = "node", "pool", "waiting"


def controller(spec: ClusterSpec) -> Controller:
    # In memory only: after a restart nodes count as idle from then on, so none is removed too
    # early.
    idle_since: dict[str, datetime.datetime] = {}
    fleet = _Fleet(spec)

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
        add_indexes=_add_indexes,
    )


def _add_indexes(context: Context) -> None:
    context.of(PODS).add_index(_BY_NODE, lambda pod: [pod["spec"].get("nodeName", "")])
    context.of(NODES).add_index(_BY_POOL, lambda node: [pool_name(node)])
    context.of(PODS).add_index(_WAITING, lambda pod: ["yes"] if _is_waiting(pod) else [])


def _is_waiting(pod: Obj) -> bool:
    """Whether the scheduler has found no node for the pod."""
    return any(
        c["type"] == "PodScheduled"
        and c["status"] == "False"
        and c.get("reason") == "Unschedulable"
        for c in pod.get("status", {}).get("conditions") or ()
    )


def _all_pools_if_waiting(pod: Obj, context: Context) -> Iterable[Key]:
    if _is_waiting(pod):
        yield from (("", pool["metadata"]["name"]) for pool in context.of(NODE_POOLS))


def _request(pod: Obj) -> PodRequest:
    """The pod's request without its GPUs: a node that does not exist yet has no cards to choose
    from, so that only amounts of resources are compared."""
    return replace(pod_request(pod), gpus=())


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
        for request in map(_request, context.of(PODS).by(_WAITING, "yes"))
        if _could_take(fresh, request)
    ]
    more = _nodes_needed(waiting, fleet.room(context), fresh, most - pool.count) if waiting else 0
    # A pool that pods wait for does not shrink, even if some of its nodes are empty.
    idle = 0 if waiting else _long_idle(_nodes(pool, context), context, idle_since)
    return max(least, min(most, pool.count + more - idle))


def _nodes(pool: PoolSpec, context: Context) -> list[Obj]:
    return context.of(NODES).by(_BY_POOL, pool.name)


@dataclass(frozen=True, slots=True)
class _Fleet:
    spec: ClusterSpec

    def empty_node(self, pool: PoolSpec) -> NodeInfo:
        """A further node of the pool, as it would be created."""
        return node_of(new_nodes(pool, 1, network=self.spec.network, taken=Taken())[0])

    def room(self, context: Context) -> ClusterModel:
        """The nodes of all autoscaled pools, with those that are requested but do not exist yet:
        a pod that fits on one of them needs no further node."""
        room = ClusterModel()
        for nodepool in context.of(NODE_POOLS):
            pool = pool_of(nodepool, self.spec)
            if not isinstance(pool, PoolSpec) or pool.autoscaling is None:
                continue
            nodes = _nodes(pool, context)
            for node in nodes:
                room.set_node(_settled(node, context))
            fresh = self.empty_node(pool)
            for number in range(pool.count - len(nodes)):
                room.set_node(_renamed(fresh, f"asked for/{pool.name}/{number}"))
        for pod in context.of(PODS):
            node = pod["spec"].get("nodeName", "")
            if must_go(pod) and room.state(node):
                room.hold(_request(pod), node)
        return room


def _settled(node: Obj, context: Context) -> NodeInfo:
    """The node; taken as ready if it was created only just now."""
    found = node_of(node)
    born = parse_time(node["metadata"]["creationTimestamp"])
    if context.now() - born >= _GETS_READY:
        return found
    return replace(found, taints=tuple(t for t in found.taints if t.key not in _UNREADY))


def _renamed(node: NodeInfo, name: str) -> NodeInfo:
    return replace(node, name=name, labels={**node.labels, LABEL_HOSTNAME: name})


def _could_take(node: NodeInfo, pod: PodRequest) -> bool:
    alone = ClusterModel()
    alone.set_node(node)
    return isinstance(decide(alone, pod, _POLICY), Placement)


def _nodes_needed(
    waiting: list[PodRequest], room: ClusterModel, fresh: NodeInfo, limit: int
) -> int:
    """Places the waiting pods one by one, on existing nodes first; counts the further nodes."""
    added = 0
    for pod in waiting:
        decision = decide(room, pod, _POLICY)
        if not isinstance(decision, Placement) and added < limit:
            name = f"more/{added}"
            room.set_node(_renamed(fresh, name))
            decision = decide(room, pod, _POLICY)
            if isinstance(decision, Placement):
                added += 1
            else:
                room.remove_node(name)
        if isinstance(decision, Placement):
            room.hold(pod, decision.node, decision.allocation)
    return added


def _long_idle(nodes: list[Obj], context: Context, idle_since: dict[str, datetime.datetime]) -> int:
    now, count = context.now(), 0
    for node in nodes:
        name = node["metadata"]["name"]
        # Pods of DaemonSets do not count: with its agent, no GPU node would ever be idle.
        if any(must_go(pod) for pod in context.of(PODS).by(_BY_NODE, name)):
            idle_since.pop(name, None)
        elif now - idle_since.setdefault(name, now) >= IDLE:
            count += 1
    return count
