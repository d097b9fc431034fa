"""The autoscaler of node pools: pools grow when pods wait for room, and shrink when nodes have been
empty for long, within their minimum and maximum.

It only sets spec.count; the NodePool controller applies quotas and drains nodes. All pools are
looked at in one step, so that two pools never grow for the same pod.
"""

import datetime
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Set

from gpupool.contract.held_allocation import held_allocation
from gpupool.contract.pods import pod_request
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.future_room import Place
from gpupool.engine.growth import GrowingPool, Growth, Together, growth, named
from gpupool.engine.policies import DEFAULT, POLICIES
from gpupool.engine.policies.mix import Mix
from gpupool.local.config.nodepools import NODE_POOLS, pool_of
from gpupool.local.config.spec import ClusterSpec, PoolSpec, Quotas
from gpupool.local.drain import must_go
from gpupool.local.future_nodes import FutureNodes
from gpupool.local.node_pool import pool_name
from gpupool.scheduler.groups import Group, group_of
from gpupool.scheduler.kept_words import told
from kubeclient.events import NORMAL
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from localkube.controllers.run import Context, Controller, Watch

IDLE = datetime.timedelta(minutes=10)
_LOOK_EVERY_S = 30.0
_POLICY = POLICIES[DEFAULT](Mix())
_BY_NODE, _BY_POOL, _WAITING = "node", "pool", "waiting"
_ALL: Key = ("", "all pools")


def controller(
    spec: ClusterSpec, quotas: Callable[[], Quotas], *, real_gpus: bool = False
) -> Controller:
    # By the uid of the node. In memory only: after a restart nodes count as idle from then on, so
    # none is removed too early.
    idle_since: dict[str, datetime.datetime] = {}
    future = FutureNodes(spec.network, has_cards=not real_gpus)

    async def reconcile(_: Key, context: Context) -> float | None:
        pools = dict(_pools(context, spec))
        wanted = _wanted(pools, context, future, quotas(), idle_since)
        for name, count in wanted.items():
            before = pools[name].count
            if count != before:
                nodepool = context.of(NODE_POOLS).get(name)
                text = f"Scaled from {before} to {count} nodes"
                context.events.event(nodepool or {}, NORMAL, "Autoscaled", text)
                await context.kube.patch(NODE_POOLS.path(name=name), {"spec": {"count": count}})
        return _LOOK_EVERY_S if wanted else None

    return Controller(
        "pool-autoscaler",
        (Watch(NODE_POOLS, lambda _pool, _context: (_ALL,)), Watch(PODS, _all_if_waiting)),
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
    return "deletionTimestamp" not in pod["metadata"] and _unschedulable(pod) is not None


def _unschedulable(pod: Obj) -> Obj | None:
    """Its condition."""
    return next(
        (
            c
            for c in pod.get("status", {}).get("conditions") or ()
            if c["type"] == "PodScheduled"
            and c["status"] == "False"
            and c.get("reason") == "Unschedulable"
        ),
        None,
    )


def _all_if_waiting(pod: Obj, _: Context) -> Iterable[Key]:
    return (_ALL,) if _is_waiting(pod) else ()


def _pools(context: Context, spec: ClusterSpec) -> Iterator[tuple[str, PoolSpec]]:
    for nodepool in context.of(NODE_POOLS):
        pool = pool_of(nodepool, spec)
        if isinstance(pool, PoolSpec) and "deletionTimestamp" not in nodepool["metadata"]:
            yield pool.name, pool


def _wanted(
    pools: dict[str, PoolSpec],
    context: Context,
    future: FutureNodes,
    quotas: Quotas,
    idle_since: dict[str, datetime.datetime],
) -> dict[str, int]:
    """The count of each pool that scales by itself."""
    elastic = {name: pool for name, pool in pools.items() if pool.autoscaling}
    waiting = list(_waiting(context)) if elastic else []
    grown = Growth(Counter(), {})
    if waiting:
        # What the NodePool controller would refuse.
        allowed = min(quotas.nodes_per_cluster, quotas.routes_per_cluster)
        most = max(0, allowed - sum(pool.count for pool in pools.values()))
        growing = [_growing(pool, future) for pool in elastic.values()]
        grown = growth(growing, _room(elastic, context, future), waiting, _POLICY, most)
    wanted, looked_at = {}, set()
    for name, pool in elastic.items():
        assert pool.autoscaling is not None
        least, highest = pool.autoscaling.minimum, pool.autoscaling.maximum
        nodes = context.of(NODES).by(_BY_POOL, name)
        looked_at |= {node["metadata"]["uid"] for node in nodes}
        # Nodes that are still there although the count is without them go first, and they are idle.
        going = max(0, len(nodes) - pool.count)
        idle = max(0, _long_idle(nodes, grown.used, context, idle_since) - going)
        wanted[name] = max(least, min(highest, pool.count + grown.further[name] - idle))
    for uid in idle_since.keys() - looked_at:
        del idle_since[uid]
    return wanted


def _growing(pool: PoolSpec, future: FutureNodes) -> GrowingPool:
    most = pool.autoscaling.maximum if pool.autoscaling else pool.count
    return GrowingPool(pool.name, future.node(pool), most - pool.count)


def _waiting(context: Context) -> Iterator[Together]:
    """The most important first, then the oldest; members of a group together."""
    pods = context.of(PODS).by(_WAITING, "yes")
    groups: dict[tuple[str, str], list[Obj]] = defaultdict(list)
    for pod in sorted(pods, key=_order):
        metadata = pod["metadata"]
        group = group_of(metadata)
        alone = metadata["namespace"], f"/{metadata['name']}"  # no name of a group begins with "/"
        groups[group.key if isinstance(group, Group) else alone].append(pod)
    for members in groups.values():
        group = group_of(members[0]["metadata"])
        least = group.least - _started(context, group) if isinstance(group, Group) else 1
        yield Together(tuple(map(pod_request, members)), max(1, least), tuple(_kept(members)))


def _kept(pods: Iterable[Obj]) -> Iterator[Place]:
    """Where the scheduler keeps room for them: pods that it keeps off need other room."""
    for pod in pods:
        condition = _unschedulable(pod) or {}
        if (found := told(condition.get("message") or "")) is not None:
            yield Place(pod_request(pod), found.node, found.cards)


def _order(pod: Obj) -> tuple[int, str, str]:
    metadata = pod["metadata"]
    return -(pod["spec"].get("priority") or 0), metadata["creationTimestamp"], metadata["name"]


def _started(context: Context, group: Group) -> int:
    """Members that have a node already."""
    return sum(
        bool(pod["spec"].get("nodeName")) and must_go(pod)
        for pod in context.of(PODS)
        if isinstance(found := group_of(pod["metadata"]), Group) and found.key == group.key
    )


def _room(pools: dict[str, PoolSpec], context: Context, future: FutureNodes) -> ClusterModel:
    """The nodes of these pools with their pods, and nodes that are requested but do not exist yet:
    a pod that fits on one of them needs no further node. That it fits on no node of the other pools
    is what the scheduler has said.
    """
    room = ClusterModel()
    for name, pool in pools.items():
        nodes = context.of(NODES).by(_BY_POOL, name)
        for node in nodes:
            room.set_node(future.settled(node, pool, context.now()))
        further = future.node(pool)
        for number in range(pool.count - len(nodes)):
            room.set_node(named(further, f"requested/{name}/{number}"))
    for pod in context.of(PODS):
        node = pod["spec"].get("nodeName", "")
        if must_go(pod) and room.state(node):
            request = pod_request(pod)
            room.hold(request, node, held_allocation(pod, request.gpus))
    return room


def _long_idle(
    nodes: list[Obj],
    used: Set[str],
    context: Context,
    idle_since: dict[str, datetime.datetime],
) -> int:
    """`used`: nodes on which waiting pods are about to start."""
    now, count = context.now(), 0
    for node in nodes:
        # Not by name: names are used again.
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        # Pods of DaemonSets do not count: with its agent, no GPU node would ever be idle.
        if name in used or any(must_go(pod) for pod in context.of(PODS).by(_BY_NODE, name)):
            idle_since.pop(uid, None)
        elif now - idle_since.setdefault(uid, now) >= IDLE:
            count += 1
    return count
