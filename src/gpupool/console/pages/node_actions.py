"""What can be done to a node: let it take pods or not, and set its labels."""

import re
from collections.abc import Mapping

from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.page import NoSuchThing
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Right
from gpupool.console.visit import Visit
from kubeclient.resources import NODES

_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}\w)?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?")


def node_actions(
    visit: Visit, name: str, *, is_cordoned: bool, lacks: str
) -> tuple[RowAction, ...]:
    t = visit.t
    labels = RowAction(t("Labels"), visit.link("nodes", name, "labels"), lacks)
    if is_cordoned:
        return (
            RowAction(t("Set schedulable"), visit.link("nodes", name, "uncordon"), lacks),
            labels,
        )
    return (RowAction(t("Set unschedulable"), visit.link("nodes", name, "cordon"), lacks), labels)


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
    node = (await visit.watch(NODES)).mirror.get(name)
    if node is None:
        raise NoSuchThing(t('node "{name}"', name=name))
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
                value="\n".join(f"{key}={value}" for key, value in sorted(labels.items())),
                longest=64_000,
            ),
        ),
        command=f"kubectl label node {name} KEY=VALUE OTHER-",
    )


async def _set_labels(visit: Visit, values: Mapping[str, str]) -> Done:
    t, name = visit.t, visit.names["node"]
    wanted = _labels_of(visit, values["labels"])
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


def _labels_of(visit: Visit, text: str) -> dict[str, str]:
    """Raises Invalid."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        key, equals, value = line.strip().partition("=")
        if not line.strip():
            continue
        if not equals or not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            words = visit.t(
                "line {number}: wanted key=value, found: {text}", number=number, text=line
            )
            raise Invalid({"labels": words})
        found[key] = value
    return found


CORDON = Action("nodes/{node}/cordon", "nodes", _rights, _ask_cordon, _cordon)
UNCORDON = Action("nodes/{node}/uncordon", "nodes", _rights, _ask_uncordon, _uncordon)
LABELS = Action("nodes/{node}/labels", "nodes", _rights, _ask_labels, _set_labels)
ACTIONS = (CORDON, UNCORDON, LABELS)
