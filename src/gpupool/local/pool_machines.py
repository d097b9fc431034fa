"""The machines of a pool that is made of existing ones: taken for its nodes, and given back."""

from gpupool.local.config.nodepools import NODE_POOLS
from gpupool.local.config.spec import PoolSpec
from gpupool.local.machines import ClusterMachines, Machine, Wanted
from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import NODES
from localkube.apiserver.admission.attributes import Attributes, ClusterView, WriteCheck
from localkube.controllers.run import Context


def machines_check(machines: ClusterMachines | None) -> WriteCheck:
    """Refuses a pool of machines that are of another type, when it is written. The controller looks
    again when it takes them."""

    def check(attributes: Attributes, _: ClusterView) -> str:
        wanted, had = (_wanted(attributes.name, obj) for obj in (attributes.obj, attributes.old))
        if machines is None or wanted == had or not wanted.names:
            return ""  # what is there already can be changed otherwise, whatever it is
        return " ".join(machines.misfits(wanted))

    return check


def _wanted(pool: str, obj: Obj | None) -> Wanted:
    """Of what may be no pool at all: the schema refuses that later."""
    spec = (obj or {}).get("spec")
    spec = spec if isinstance(spec, dict) else {}
    names, kind = spec.get("machines"), spec.get("instanceType")
    named = (each for each in names if isinstance(each, str)) if isinstance(names, list) else ()
    return Wanted(pool, str(kind or ""), tuple(named))


async def claimed(
    machines: ClusterMachines | None, pool: PoolSpec, planned: list[Obj], missing: int
) -> str:
    """Takes the machines of the planned nodes; returns why not, empty if it did."""
    if not pool.machines:
        return ""
    if machines is None:
        return "this cluster has no machines: leave spec.machines out"
    names = tuple(node["metadata"]["name"] for node in planned)
    if len(names) < missing:
        return (
            f"wanted {missing} more nodes; found {len(names)} more machines of the pool whose name "
            "and address no other node of the cluster has"
        )
    return await machines.claim(Wanted(pool.name, pool.instance_type.name, names))


def not_held(machines: ClusterMachines | None, pool: PoolSpec, nodes: list[Obj]) -> list[Obj]:
    """Nodes of the pool whose machines the cluster does not hold: its data may be an old copy."""
    if machines is None or not pool.machines:
        return []
    held = machines.held()
    return [node for node in nodes if node["metadata"]["name"] not in held]


async def release_unused(machines: ClusterMachines, context: Context, pool: str) -> None:
    """Gives back the machines of the pool that are no nodes. Those of pools that are no more too:
    the server may have been killed between the two writes."""
    idle = [
        name
        for name, machine in machines.held().items()
        if _may_go(machine, context, pool) and not await _is_node(name, context)
    ]
    if idle:
        await machines.release(idle)


def _may_go(machine: Machine, context: Context, pool: str) -> bool:
    """Another pool may be about to make its nodes."""
    return machine.pool == pool or context.of(NODE_POOLS).get(machine.pool) is None


async def _is_node(name: str, context: Context) -> bool:
    if context.of(NODES).get(name) is not None:
        return True
    try:  # the mirror may not show a node that was made just now
        await context.kube.get(NODES, name)
    except NotFound:
        return False
    return True
