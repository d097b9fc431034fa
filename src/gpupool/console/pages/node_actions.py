"""What can be done to a node: let it take pods or not, and set its labels and taints."""

from collections.abc import Mapping

from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.form import Field, FieldKind
from gpupool.console.parts.lines import labels_of, lines_of, taint_kind, taint_lines, taints_of
from gpupool.console.parts.page import NoSuchThing
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Right
from gpupool.console.visit import Visit
from kubeclient.objects import Obj
from kubeclient.resources import NODES

# A manifest of a node has at most so many bytes of each.
_LONGEST = 64_000


def switch(visit: Visit, name: str, *, is_cordoned: bool, lacks: str) -> RowAction:
    """The button that fits: a node takes pods, or does not."""
    t = visit.t
    if is_cordoned:
        return RowAction(t("Set schedulable"), visit.link("nodes", name, "uncordon"), lacks)
    return RowAction(t("Set unschedulable"), visit.link("nodes", name, "cordon"), lacks)


def texts(visit: Visit, name: str, lacks: str) -> tuple[RowAction, ...]:
    t = visit.t
    return (
        RowAction(t("Labels"), visit.link("nodes", name, "labels"), lacks),
        RowAction(t("Taints"), visit.link("nodes", name, "taints"), lacks),
    )


def _rights(_: Visit) -> tuple[Right, ...]:
    return (Right("patch", NODES),)


async def _ask_cordon(visit: Visit) -> Question:
    t, name = visit.t, visit.names["node"]
    return Question(
        title=t("Set node {name} unschedulable", name=name),
        sentence=t("It gets no new pods. Pods that run on it stay."),
        button=t("Set unschedulable"),
        command=f"kubectl cordon {name}",
    )


async def _ask_uncordon(visit: Visit) -> Question:
    t, name = visit.t, visit.names["node"]
    return Question(
        title=t("Set node {name} schedulable", name=name),
        sentence=t("It gets new pods again."),
        button=t("Set schedulable"),
        command=f"kubectl uncordon {name}",
    )


async def _cordon(visit: Visit, _: Mapping[str, str]) -> Done:
    return await _set_unschedulable(visit, True)


async def _uncordon(visit: Visit, _: Mapping[str, str]) -> Done:
    return await _set_unschedulable(visit, False)


async def _set_unschedulable(visit: Visit, wanted: bool) -> Done:
    t, name = visit.t, visit.names["node"]
    patch = {"spec": {"unschedulable": True if wanted else None}}
    await visit.kube.patch(NODES.path(name=name), patch)
    words = (
        t("Node {name} gets no new pods.", name=name)
        if wanted
        else t("Node {name} gets new pods again.", name=name)
    )
    return Done(visit.link("nodes", name), words)


async def _ask_labels(visit: Visit) -> Question:
    t, name = visit.t, visit.names["node"]
    node = await known_node(visit)
    labels = node["metadata"].get("labels") or {}
    return Question(
        title=t("Labels of node {name}", name=name),
        sentence=t("One label in a line, as key=value. A line that you remove removes its label."),
        button=t("Save labels"),
        fields=(
            Field(
                "labels",
                t("Labels"),
                FieldKind.LINES,
                value=lines_of(dict(sorted(labels.items()))),
                longest=_LONGEST,
            ),
        ),
        command=f"kubectl label node {name} KEY=VALUE OTHER-",
    )


async def _set_labels(visit: Visit, values: Mapping[str, str]) -> Done:
    t, name = visit.t, visit.names["node"]
    wanted = labels_of(t, "labels", values["labels"])
    node = await visit.kube.get(NODES, name)
    now = node["metadata"].get("labels") or {}
    changes: dict[str, str | None] = {k: v for k, v in wanted.items() if now.get(k) != v}
    changes |= {key: None for key in now if key not in wanted}
    if changes:
        # With the version that the differences are to: what somebody else has written meanwhile
        # must not be taken away.
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        patch = {"metadata": {**version, "labels": changes}}
        await visit.kube.patch(NODES.path(name=name), patch)
    return Done(visit.link("nodes", name), t("{count} labels changed.", count=len(changes)))


async def _ask_taints(visit: Visit) -> Question:
    t, name = visit.t, visit.names["node"]
    taints = ((await known_node(visit)).get("spec") or {}).get("taints") or []
    return Question(
        title=t("Taints of node {name}", name=name),
        sentence=t("They keep pods away that do not tolerate them; NoExecute also ends such pods."),
        button=t("Save taints"),
        fields=(
            Field(
                "taints",
                t("Taints"),
                FieldKind.LINES,
                t("One per line: key=value:NoSchedule"),
                taint_lines(taints),
                longest=_LONGEST,
            ),
        ),
        command=f"kubectl taint node {name} KEY=VALUE:NoSchedule OTHER:NoExecute-",
    )


async def _set_taints(visit: Visit, values: Mapping[str, str]) -> Done:
    t, name = visit.t, visit.names["node"]
    wanted = taints_of(t, "taints", values["taints"])
    node = await visit.kube.get(NODES, name)
    now = {taint_kind(each): each for each in (node.get("spec") or {}).get("taints") or []}
    # A taint that stays keeps the time since when it is there: pods count from then.
    kept = [_as_it_was(now.get(taint_kind(each)), each) for each in wanted]
    patch = {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
        "spec": {"taints": kept or None},
    }
    await visit.kube.patch(NODES.path(name=name), patch)
    return Done(visit.link("nodes", name), t("The node has {count} taints.", count=len(kept)))


def _as_it_was(before: Obj | None, wanted: Obj) -> Obj:
    is_same = before is not None and (before.get("value") or "") == wanted.get("value", "")
    return before if before is not None and is_same else wanted


async def known_node(visit: Visit) -> Obj:
    """The node of the address. Raises NoSuchThing, and as `Visit.watch`."""
    name = visit.names["node"]
    node = (await visit.watch(NODES)).mirror.get(name)
    if node is None:
        raise NoSuchThing(visit.t('node "{name}"', name=name))
    return node


CORDON = Action("nodes/{node}/cordon", "nodes", _rights, _ask_cordon, _cordon)
UNCORDON = Action("nodes/{node}/uncordon", "nodes", _rights, _ask_uncordon, _uncordon)
LABELS = Action("nodes/{node}/labels", "nodes", _rights, _ask_labels, _set_labels)
TAINTS = Action("nodes/{node}/taints", "nodes", _rights, _ask_taints, _set_taints)
ACTIONS = (CORDON, UNCORDON, LABELS, TAINTS)
