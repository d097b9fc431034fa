"""What can be done to node pools: create, edit, scale out, delete."""

from collections.abc import Callable, Mapping

from gpupool.console.machines import offered_types
from gpupool.console.pages.existing import existing_fields, existing_of
from gpupool.console.pages.pool_form import (
    changes,
    check_count,
    count_field,
    new_fields,
    new_pool_name,
    spec_fields,
    spec_of,
    start_of,
)
from gpupool.console.pages.pool_sync import most_synced, sync_nodes
from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.form import Field, FieldKind
from gpupool.console.platform import OwnMachine
from gpupool.console.rights import Right
from gpupool.console.rows.pools import NODE_POOLS
from gpupool.console.visit import Visit
from kubeclient.errors import KubeError
from kubeclient.objects import Obj
from kubeclient.resources import CRDS
from kubeclient.yaml_writing import dump_yaml

_EXAMPLE: Obj = {
    "apiVersion": NODE_POOLS.api_version,
    "kind": NODE_POOLS.kind,
    "metadata": {"name": "NAME"},
    "spec": {
        "count": 1,
        "instanceType": "TYPE",
        "os": "CentOS 7.x",
        "labels": {"KEY": "VALUE"},
        "taints": [{"key": "KEY", "value": "VALUE", "effect": "NoSchedule"}],
        "tags": {"KEY": "VALUE"},
        "resourceGroup": "GROUP",
        "managed": False,
        "autoscaling": {"min": 0, "max": 4},
    },
}


def _right(verb: str) -> Callable[[Visit], tuple[Right, ...]]:
    return lambda _: (Right(verb, NODE_POOLS),)


async def _types(visit: Visit) -> tuple[tuple[str, str], ...]:
    """Those of the cluster: its file may have named more than the catalogue has."""
    known = {each.name: each for each in visit.machines}
    names = tuple(known)
    try:
        crd = await visit.kube.get(CRDS, f"{NODE_POOLS.plural}.{NODE_POOLS.group}")
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        names = tuple(schema["properties"]["spec"]["properties"]["instanceType"]["enum"])
    except (KubeError, KeyError, IndexError):
        pass  # not to be seen by everybody: then the catalogue is offered
    return offered_types(visit.t, known, names)


async def _ask_create(visit: Visit) -> Question:
    t, start = visit.t, start_of(visit.query)
    title = t("Create node pool")
    if start.is_managed:
        title = t("Create managed node pool")
    elif start.is_scaling:
        title = t("Configure auto scaling")
    example = dump_yaml(_EXAMPLE)
    return Question(
        title=title,
        button=t("Create node pool"),
        fields=new_fields(t, start, await _types(visit), await _existing_fields(visit)),
        command=f"kubectl apply -f - <<EOF\n{example}EOF",
    )


async def _there(visit: Visit) -> tuple[OwnMachine, ...] | None:
    """Instances that exist, for a cluster of this machine; None: it cannot be made of them."""
    own = visit.own
    if own is None or own.platform.desk is None:
        return None
    local = {each.key for each in await own.known() if each.is_local}
    return await own.machines() if visit.cluster in local else None


async def _existing_fields(visit: Visit) -> tuple[Field, ...]:
    there = await _there(visit)
    if there is None:
        return ()
    known = {each.name: each for each in visit.machines}
    return existing_fields(visit.t, "", there, known)


async def _create(visit: Visit, values: Mapping[str, str]) -> Done:
    t, name = visit.t, new_pool_name(visit.t, values["name"])
    spec = spec_of(t, values)
    spec = {"count": int(values["count"]), "instanceType": values["type"], **spec}
    if existing := existing_of(t, values, "", await _there(visit) or ()):
        spec["instanceType"], spec["count"] = existing.instance_type, len(existing.names)
        spec["machines"] = list(existing.names)
    check_count(t, spec["count"], spec)
    pool: Obj = {
        "apiVersion": NODE_POOLS.api_version,
        "kind": NODE_POOLS.kind,
        "metadata": {"name": name},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }
    await visit.kube.create(NODE_POOLS, pool)
    return Done(visit.link("pools"), t("Node pool {name} is being created.", name=name))


async def _ask_edit(visit: Visit) -> Question:
    t, name = visit.t, visit.names["pool"]
    pool = await visit.kube.get(NODE_POOLS, name)
    return Question(
        title=t("Edit node pool {name}", name=name),
        sentence=t("What you change holds for nodes that are made from now on."),
        button=t("Save"),
        fields=(
            *spec_fields(t, pool["spec"]),
            Field(
                "sync",
                t("Also set labels and taints of the nodes that are there"),
                FieldKind.CHECK,
                value="yes",
            ),
        ),
        command=f"kubectl edit nodepool {name}",
    )


async def _edit(visit: Visit, values: Mapping[str, str]) -> Done:
    t, name = visit.t, visit.names["pool"]
    pool = await visit.kube.get(NODE_POOLS, name)
    before, after = pool["spec"], spec_of(t, values)
    check_count(t, before.get("count", 1), after, "most")
    if values["sync"]:
        await most_synced(visit, name)
    patch = {
        "metadata": {"resourceVersion": pool["metadata"]["resourceVersion"]},
        "spec": changes(before, after),
    }
    await visit.kube.patch(NODE_POOLS.path(name=name), patch)
    words = t("Node pool {name} is changed.", name=name)
    if values["sync"]:
        count = await sync_nodes(visit, name, before, after)
        words += " " + t("Nodes changed: {count}.", count=count)
    return Done(visit.link("pools", name), words)


async def _ask_scale(visit: Visit) -> Question:
    t, name = visit.t, visit.names["pool"]
    pool = await visit.kube.get(NODE_POOLS, name)
    return Question(
        title=t("Scale out node pool {name}", name=name),
        button=t("Scale out"),
        fields=(count_field(t, t("Nodes wanted"), pool["spec"].get("count", 1)),),
        command=f"kubectl scale nodepool {name} --replicas=N",
    )


async def _scale(visit: Visit, values: Mapping[str, str]) -> Done:
    name, count = visit.names["pool"], int(values["count"])
    pool = await visit.kube.get(NODE_POOLS, name)
    check_count(visit.t, count, pool["spec"])
    await visit.kube.patch(NODE_POOLS.path(name=name), {"spec": {"count": count}})
    words = visit.t("Node pool {name} is to have {count} nodes.", name=name, count=count)
    return Done(visit.link("pools"), words)


async def _ask_delete(visit: Visit) -> Question:
    t, name = visit.t, visit.names["pool"]
    return Question(
        title=t("Delete node pool {name}", name=name),
        sentence=t("Its nodes are drained and removed."),
        button=t("Delete node pool {name}", name=name),
        is_dangerous=True,
        typed_name=name,
        command=f"kubectl delete nodepool {name}",
    )


async def _delete(visit: Visit, _: Mapping[str, str]) -> Done:
    name = visit.names["pool"]
    await visit.kube.delete(NODE_POOLS, name)
    return Done(visit.link("pools"), visit.t("Node pool {name} is being deleted.", name=name))


ACTIONS = (
    Action("create/pool", "pools", _right("create"), _ask_create, _create),
    Action("pools/{pool}/edit", "pools", _right("patch"), _ask_edit, _edit),
    Action("pools/{pool}/scale", "pools", _right("patch"), _ask_scale, _scale),
    Action("pools/{pool}/delete", "pools", _right("delete"), _ask_delete, _delete),
)
