"""What can be done to node pools: create with the fields of the document, scale out, delete."""

import re
from collections.abc import Callable, Mapping

from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.lines import labels_of, lines_of, tags_of, taints_of
from gpupool.console.rights import Right
from gpupool.console.rows.pools import NODE_POOLS
from gpupool.console.visit import Visit
from gpupool.contract.names import LABEL_CGPU, LABEL_CGPU_NO_ISOLATION
from kubeclient.objects import Obj

_SYSTEMS = ("CentOS 7.x", "Alibaba Cloud Linux 2.x")
_MOST_NODES = 100_000
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# The two pools of the document about shared GPUs.
_PRESETS: Mapping[str, Mapping[str, str]] = {
    "cgpu": {LABEL_CGPU: "true", LABEL_CGPU_NO_ISOLATION: "false"},
    "cgpu-no-isolation": {LABEL_CGPU: "true", LABEL_CGPU_NO_ISOLATION: "true"},
}


def _right(verb: str) -> Callable[[Visit], tuple[Right, ...]]:
    return lambda _: (Right(verb, NODE_POOLS),)


async def _ask_create(visit: Visit) -> Question:
    t = visit.t
    preset = visit.query.get("preset", "")
    labels = _PRESETS.get(preset, {})
    text = FieldKind.LINES
    name = preset if labels else ""
    return Question(
        title=t("Create node pool"),
        button=t("Create node pool"),
        fields=(
            Field("name", t("Node pool name"), value=name, is_required=True, longest=63),
            Field(
                "count",
                t("Nodes"),
                FieldKind.NUMBER,
                help=t("May be 0: nodes can be added later."),
                value="1",
                is_required=True,
                least=0,
                most=_MOST_NODES,
            ),
            Field("type", t("Instance type"), value="ecs.gn6v-c8g1.2xlarge", is_required=True),
            Field(
                "os",
                t("Operating system"),
                FieldKind.CHOICE,
                value=_SYSTEMS[1] if labels else _SYSTEMS[0],
                choices=tuple((each, each) for each in _SYSTEMS),
            ),
            Field(
                "labels", t("Node labels"), text, t("One in a line: key=value"), lines_of(labels)
            ),
            Field("tags", t("ECS tags"), text, t("One in a line: key=value")),
            Field("group", t("Resource group"), longest=128),
            Field("taints", t("Taints"), text, t("One in a line: key=value:NoSchedule")),
        ),
        command="kubectl apply -f POOL.yaml",
    )


async def _create(visit: Visit, values: Mapping[str, str]) -> Done:
    t = visit.t
    if not _NAME.fullmatch(values["name"]):
        raise Invalid({"name": t("Wanted small letters, digits and hyphens.")})
    spec: Obj = {
        "count": int(values["count"]),
        "instanceType": values["type"],
        "os": values["os"],
        "labels": labels_of(t, "labels", values["labels"]),
        "tags": tags_of(t, "tags", values["tags"]),
        "taints": taints_of(t, "taints", values["taints"]),
    }
    if values["group"]:
        spec["resourceGroup"] = values["group"]
    pool: Obj = {
        "apiVersion": NODE_POOLS.api_version,
        "kind": NODE_POOLS.kind,
        "metadata": {"name": values["name"]},
        "spec": {key: value for key, value in spec.items() if value not in ({}, [])},
    }
    await visit.kube.create(NODE_POOLS, pool)
    return Done(visit.link("pools"), t("Node pool {name} is being created.", name=values["name"]))


async def _ask_scale(visit: Visit) -> Question:
    t, name = visit.t, visit.names["pool"]
    pool = await visit.kube.get(NODE_POOLS, name)
    return Question(
        title=t("Scale out node pool {name}", name=name),
        button=t("Scale out"),
        fields=(
            Field(
                "count",
                t("Nodes wanted"),
                FieldKind.NUMBER,
                value=str(pool["spec"].get("count", 1)),
                is_required=True,
                least=0,
                most=_MOST_NODES,
            ),
        ),
        command=f"kubectl scale nodepool {name} --replicas=N",
    )


async def _scale(visit: Visit, values: Mapping[str, str]) -> Done:
    name, count = visit.names["pool"], int(values["count"])
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
    Action("pools/create", "pools", _right("create"), _ask_create, _create),
    Action("pools/{pool}/scale", "pools", _right("patch"), _ask_scale, _scale),
    Action("pools/{pool}/delete", "pools", _right("delete"), _ask_delete, _delete),
)
