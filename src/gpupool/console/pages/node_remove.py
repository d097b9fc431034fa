"""Removing a node from the cluster, after a drain if that is wanted."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping

from gpupool.console.drain import cordoned, pods_on
from gpupool.console.pages.node_actions import known_node
from gpupool.console.pages.node_drain import RIGHTS, begin_drain, check_consents, consents
from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.rights import Right
from gpupool.console.rows.nodes import node_row
from gpupool.console.rows.pools import NODE_POOLS
from gpupool.console.visit import Visit
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound
from kubeclient.objects import Obj
from kubeclient.resources import NODES


async def _ask(visit: Visit) -> Question:
    t, name = visit.t, visit.names["node"]
    node = await known_node(visit)
    pods = await pods_on(visit.kube, name)
    pool = await _pool(visit, node)
    sentence = t("The cluster forgets the node, and ends its pods.")
    if pool is None:
        sentence += " " + t("A machine whose kubelet still runs registers again.")
    fields = [
        Field(
            "drain",
            t("Drain it first: its pods are evicted as their disruption budgets allow"),
            FieldKind.CHECK,
            value="yes",
        ),
        *consents(t, pods),
    ]
    if pool is not None:
        fields.append(_pool_field(visit, pool))
    return Question(
        title=t("Remove node {name}", name=name),
        sentence=sentence,
        button=t("Remove node {name}", name=name),
        fields=tuple(fields),
        is_dangerous=True,
        typed_name=name,
        command=f"kubectl drain {name} --ignore-daemonsets && kubectl delete node {name}",
    )


def _pool_field(visit: Visit, pool: Obj) -> Field:
    count = int(pool["spec"].get("count", 1))
    return Field(
        "smaller",
        visit.t(
            "Node pool {pool} is to have {count} nodes then; otherwise it makes a new one",
            pool=pool["metadata"]["name"],
            count=max(0, count - 1),
        ),
        FieldKind.CHECK,
        value="yes",
    )


async def _pool(visit: Visit, node: Obj) -> Obj | None:
    """The NodePool that would replace the node; None: there is none, or it cannot be seen."""
    name = node_row(node).pool
    try:
        return await visit.kube.get(NODE_POOLS, name) if name else None
    except KubeError:
        return None


async def _remove(visit: Visit, values: Mapping[str, str]) -> Done:
    t, name = visit.t, visit.names["node"]
    node = await known_node(visit)
    pool = await _pool(visit, node) if values.get("smaller") else None
    if pool is not None and (lacks := await visit.lacks(Right("patch", NODE_POOLS))):
        raise Invalid({"smaller": lacks})
    remove = _removal(visit.kube, node, pool)
    if not values["drain"]:
        await remove()
        return Done(visit.link("nodes"), t("Node {name} is removed.", name=name))
    if lacks := await visit.lacks(*RIGHTS):
        raise Invalid({"drain": lacks})
    check_consents(t, await pods_on(visit.kube, name), values)
    await begin_drain(visit, name, remove)
    words = t("Node {name} is being drained, and is removed then.", name=name)
    return Done(visit.link("nodes", name, "draining"), words)


def _removal(kube: Kube, node: Obj, pool: Obj | None) -> Callable[[], Awaitable[None]]:
    metadata = node["metadata"]

    async def remove() -> None:
        if pool is not None:
            # First: a pool that misses a node makes one at once. It removes cordoned nodes before
            # others, so most often it removes this one itself.
            await cordoned(kube, metadata["name"])
            now = await kube.get(NODE_POOLS, pool["metadata"]["name"])
            count = max(0, int(now["spec"].get("count", 1)) - 1)
            version = {"resourceVersion": now["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "spec": {"count": count}}
            await kube.patch(NODE_POOLS.path(name=now["metadata"]["name"]), patch)
        with contextlib.suppress(NotFound):
            options = {"preconditions": {"uid": metadata["uid"]}}
            await kube.delete(NODES, metadata["name"], options=options)

    return remove


def _rights(_: Visit) -> tuple[Right, ...]:
    return (Right("delete", NODES),)


ACTIONS = (Action("nodes/{node}/remove", "nodes", _rights, _ask, _remove),)
