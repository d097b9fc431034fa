"""The NodePool controller: creates and removes nodes to match spec.count, within the quotas.

A node is drained before it is removed.
"""

import contextlib
from collections.abc import Callable, Iterable

from gpupool.contract import names
from gpupool.local.config.nodepools import ACTIVE, FAILED, INITIALIZING, NODE_POOLS, pool_of
from gpupool.local.config.nodes import NetworkFull, new_nodes, taken_by
from gpupool.local.config.quotas import exceeded_nodes
from gpupool.local.config.spec import ClusterSpec, PoolSpec, Quotas
from gpupool.local.drain import drained, must_go
from gpupool.local.machines import ClusterMachines
from gpupool.local.pool_machines import claimed, not_held, release_unused
from kubeclient.errors import AlreadyExists, NotFound
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from localkube.controllers.run import Context, Controller, Watch
from localkube.nodes import says_ready

FINALIZER = f"{names.API_GROUP}/nodes"
# Pods are read but not watched here, so a node that is being drained is looked at again.
_LOOK_AGAIN_S = 1.0
_BY_POOL, _BY_NODE = "pool", "node"
# A pool of hundreds takes seconds to make: whoever looks meanwhile sees how far it is.
_TELL_AFTER = 20


def controller(
    spec: ClusterSpec, quotas: Callable[[], Quotas], machines: ClusterMachines | None = None
) -> Controller:
    async def reconcile(key: Key, context: Context) -> float | None:
        nodepool = context.of(NODE_POOLS).get(key[1])
        again = None
        if nodepool is not None:
            again = await _Pool(nodepool, context, spec, quotas(), machines).step()
        if machines is not None:
            await release_unused(machines, context, key[1])
        return again

    return Controller(
        "nodepool-controller",
        (Watch(NODE_POOLS), Watch(NODES, _pool_key)),
        reconcile,
        reads=(PODS,),
        workers=1,  # pools share the quota and the addresses: only one may grow at a time
        add_indexes=_add_indexes,
    )


def _add_indexes(context: Context) -> None:
    context.of(NODES).add_index(_BY_POOL, lambda node: [pool_name(node)])
    context.of(PODS).add_index(_BY_NODE, lambda pod: [pod["spec"].get("nodeName", "")])


def pool_name(node: Obj) -> str:
    return str((node["metadata"].get("labels") or {}).get(names.LABEL_POOL, ""))


def _pool_key(node: Obj, _: Context) -> Iterable[Key]:
    return [("", pool_name(node))] if pool_name(node) else []


def in_order_of_removal(nodes: Iterable[Obj], busy: Callable[[str], int]) -> list[Obj]:
    """Cordoned nodes first, then those with the fewest pods to evict, then the youngest.

    Draining takes several steps and begins with a cordon. Each step must choose the same nodes
    again, so nothing that changes meanwhile may decide between two cordoned nodes but their pods.
    """

    def youngest(node: Obj) -> tuple[str, int, str]:
        # Of nodes of one second, the last by number. Times in UTC sort as text.
        name: str = node["metadata"]["name"]
        return node["metadata"].get("creationTimestamp") or "", len(name), name

    def cost(node: Obj) -> tuple[bool, int]:
        cordoned = bool((node.get("spec") or {}).get("unschedulable"))
        return not cordoned, busy(node["metadata"]["name"])

    return sorted(sorted(nodes, key=youngest, reverse=True), key=cost)


class _Pool:
    """One reconciliation of one pool."""

    def __init__(
        self,
        nodepool: Obj,
        context: Context,
        spec: ClusterSpec,
        quotas: Quotas,
        machines: ClusterMachines | None,
    ) -> None:
        self.nodepool = nodepool
        self.machines = machines
        self.context = context
        self.spec = spec
        self.quotas = quotas
        self.name: str = nodepool["metadata"]["name"]
        self.nodes = context.of(NODES).by(_BY_POOL, self.name)

    async def step(self) -> float | None:
        if "deletionTimestamp" in self.nodepool["metadata"]:
            return await self._delete_nodes()
        # Before the first node: if the pool is deleted from now on, its nodes are drained first.
        if FINALIZER not in (self.nodepool["metadata"].get("finalizers") or ()):
            await self._add_finalizer()
        pool = pool_of(self.nodepool, self.spec)
        if not isinstance(pool, PoolSpec):
            problem = "; ".join(each.line(self.name) for each in pool)
            await self._write_status("InvalidSpec", problem)
            return None
        missing = pool.count - len(self.nodes)
        why = ("", "")
        if missing > 0:
            why = await self._grow(pool, missing)
        elif missing < 0:
            await self._shrink(-missing)
        elif lost := not_held(self.machines, pool, self.nodes):
            why = await self._claim(pool, lost, len(lost))
        await self._write_status(*why)
        return _LOOK_AGAIN_S if len(self.nodes) != pool.count else None

    async def _grow(self, pool: PoolSpec, missing: int) -> tuple[str, str]:
        """Adds all missing nodes or none; returns reason and words why not, empty if it did."""
        everywhere = list(self.context.of(NODES))
        over = exceeded_nodes(self.quotas, existing=len(everywhere), more=missing)
        if over:
            return "QuotaExceeded", "; ".join(str(each) for each in over)
        try:
            planned = new_nodes(
                pool,
                missing,
                network=self.spec.network,
                taken=taken_by(everywhere),
            )
        except NetworkFull as error:
            return "QuotaExceeded", str(error)
        why = await self._claim(pool, planned, missing)
        if why == ("", ""):
            await self._create(planned, missing)
        return why

    async def _claim(self, pool: PoolSpec, nodes: list[Obj], wanted: int) -> tuple[str, str]:
        why = await claimed(self.machines, pool, nodes, wanted)
        return ("MachinesUnavailable", why) if why else ("", "")

    async def _create(self, planned: list[Obj], missing: int) -> None:
        made = 0
        for node in planned:
            if self.context.of(PODS).by(_BY_NODE, node["metadata"]["name"]):
                continue  # pods of a deleted node of the same name: they must not start here
            # The mirror may not show nodes that we have just created. Their names are derived from
            # the pool, so that the API server refuses to create them twice.
            with contextlib.suppress(AlreadyExists):
                self.nodes.append(await self.context.kube.create(NODES, node))
                made += 1
                if made % _TELL_AFTER == 0 and made < missing:
                    await self._write_status("", "")
        if made:
            text = f"Added {made} node(s) to the pool"
            self.context.events.event(self.nodepool, NORMAL, "ScaledUp", text)

    async def _shrink(self, surplus: int) -> None:
        """A node is removed when it is drained."""
        pods = self.context.of(PODS)

        def busy(name: str) -> int:
            # As the autoscaler counts: a node that it calls idle may be full of ended pods.
            return sum(map(must_go, pods.by(_BY_NODE, name)))

        for node in in_order_of_removal(self.nodes, busy)[:surplus]:
            await self._remove(node)

    async def _remove(self, node: Obj) -> None:
        name = node["metadata"]["name"]
        if await drained(self.context, node, self.context.of(PODS).by(_BY_NODE, name)):
            with contextlib.suppress(NotFound):
                await self.context.kube.delete(NODES, name)
            self.context.events.event(
                self.nodepool, NORMAL, "ScaledDown", f"Removed node {name} from the pool"
            )

    async def _delete_nodes(self) -> float | None:
        """The pool is being deleted: removes its nodes, then the finalizer."""
        for node in self.nodes:
            await self._remove(node)
        # Also when all were removed just now: the finalizer goes when the mirror shows no node any
        # more.
        if self.nodes:
            return _LOOK_AGAIN_S
        left = [f for f in self.nodepool["metadata"].get("finalizers") or () if f != FINALIZER]
        with contextlib.suppress(NotFound):
            await self._patch({"metadata": {"finalizers": left}})
        return None

    async def _add_finalizer(self) -> None:
        finalizers = self.nodepool["metadata"].get("finalizers") or []
        await self._patch({"metadata": {"finalizers": [*finalizers, FINALIZER]}})

    async def _patch(self, patch: Obj, subresource: str = "") -> None:
        path = NODE_POOLS.path(name=self.name, subresource=subresource)
        await self.context.kube.patch(path, patch)

    async def _write_status(self, problem: str, message: str) -> None:
        ready = sum(says_ready(node) for node in self.nodes)
        wanted = self.nodepool["spec"].get("count", 0)
        settled = not problem and ready == len(self.nodes) == wanted
        known = self.nodepool.get("status", {})
        # A pool that was active once stays active while it grows or shrinks.
        phase = ACTIVE if settled or known.get("phase") == ACTIVE else INITIALIZING
        status: Obj = {
            "phase": FAILED if problem else phase,
            "nodes": len(self.nodes),
            "readyNodes": ready,
            "selector": f"{names.LABEL_POOL}={self.name}",
            "observedGeneration": self.nodepool["metadata"].get("generation", 0),
            "conditions": [self._condition(settled, problem, message)],
        }
        if status == known:
            return
        # One event when the problem appears, not one with each look.
        if problem and problem not in str(known.get("conditions")):
            self.context.events.event(self.nodepool, WARNING, problem, message)
        await self._patch({"status": status}, "status")

    def _condition(self, settled: bool, problem: str, message: str) -> Obj:
        if problem:
            reason, text = problem, message
        elif settled:
            reason, text = "NodesReady", "every node of the pool is ready"
        else:
            wanted = self.nodepool["spec"].get("count", 0)
            ready = sum(says_ready(node) for node in self.nodes)
            reason, text = "NodesNotReady", f"{ready} of {wanted} nodes are ready"
        condition = {
            "type": "Ready",
            "status": "True" if settled else "False",
            "reason": reason,
            "message": text,
        }
        for known in self.nodepool.get("status", {}).get("conditions") or ():
            if known["type"] == "Ready" and known["status"] == condition["status"]:
                return {**condition, "lastTransitionTime": known["lastTransitionTime"]}
        stamp = self.context.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {**condition, "lastTransitionTime": stamp}
