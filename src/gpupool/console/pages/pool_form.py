"""The form of a node pool: its fields, and the spec that they make. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.lines import labels_of, lines_of, tags_of, taint_lines, taints_of
from gpupool.console.words import Translate
from gpupool.contract.names import LABEL_CGPU, LABEL_CGPU_NO_ISOLATION
from kubeclient.objects import Obj

SYSTEMS = ("CentOS 7.x", "Alibaba Cloud Linux 2.x")
MOST_NODES = 100_000
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_USUAL_TYPE = "ecs.gn6v-c8g1.2xlarge"
# The two pools of the document about shared GPUs.
PRESETS: Mapping[str, Obj] = {
    "cgpu": {
        "labels": {LABEL_CGPU: "true", LABEL_CGPU_NO_ISOLATION: "false"},
        "os": SYSTEMS[1],
    },
    "cgpu-no-isolation": {
        "labels": {LABEL_CGPU: "true", LABEL_CGPU_NO_ISOLATION: "true"},
        "os": SYSTEMS[1],
    },
}


@dataclass(frozen=True, slots=True)
class Start:
    """What a form for a new pool begins with."""

    name: str = ""
    is_managed: bool = False
    is_scaling: bool = False
    spec: Mapping[str, object] | None = None


def start_of(query: Mapping[str, str]) -> Start:
    preset = query.get("preset", "")
    return Start(
        preset if preset in PRESETS else "",
        query.get("kind") == "managed",
        query.get("kind") == "scaling",
        PRESETS.get(preset),
    )


def new_fields(
    t: Translate, start: Start, types: tuple[tuple[str, str], ...], existing: tuple[Field, ...]
) -> tuple[Field, ...]:
    """`existing`: those that make it of instances that exist; none where it cannot be."""
    usual = _USUAL_TYPE if _USUAL_TYPE in dict(types) else (types[0][0] if types else "")
    spec: Obj = {"managed": start.is_managed, **(start.spec or {})}
    if start.is_scaling:
        spec["autoscaling"] = {"min": 0, "max": 4}
    kind = FieldKind.CHOICE if types else FieldKind.TEXT
    return (
        Field("name", t("Node pool name"), value=start.name, is_required=True, longest=63),
        *existing,
        count_field(t, t("Nodes"), 1),
        Field("type", t("Instance type"), kind, value=usual, is_required=True, choices=types),
        *spec_fields(t, spec),
    )


def count_field(t: Translate, label: str, count: int) -> Field:
    return Field(
        "count",
        label,
        FieldKind.NUMBER,
        t("From 0 to {most}. It can be changed later.", most=f"{MOST_NODES:,}"),
        str(count),
        is_required=True,
        least=0,
        most=MOST_NODES,
    )


def spec_fields(t: Translate, spec: Obj) -> tuple[Field, ...]:
    """Those that can also be changed later."""
    scaling = spec.get("autoscaling") or {}
    system = str(spec.get("os") or SYSTEMS[0])
    known = SYSTEMS if system in SYSTEMS else (system, *SYSTEMS)
    pair, taint = t("One per line: key=value"), t("One per line: key=value:NoSchedule")
    labels = t("One per line: key=value. With cgpu=true, pods share the cards of the nodes.")
    number = FieldKind.NUMBER
    return (
        Field(
            "os",
            t("Operating system"),
            FieldKind.CHOICE,
            value=system,
            choices=tuple((each, each) for each in known),
        ),
        _lines("labels", t("Node labels"), labels, lines_of(spec.get("labels") or {})),
        _lines("taints", t("Taints"), taint, taint_lines(spec.get("taints") or ())),
        _lines("tags", t("ECS tags"), pair, lines_of(spec.get("tags") or {})),
        Field("group", t("Resource group"), value=spec.get("resourceGroup") or "", longest=128),
        Field(
            "managed",
            t("Managed: the platform repairs and upgrades its nodes"),
            FieldKind.CHECK,
            value="yes" if spec.get("managed") else "",
        ),
        Field(
            "least",
            t("Auto scaling: fewest nodes"),
            number,
            t("Both numbers: the pool grows when pods wait. None: its size is fixed."),
            str(scaling.get("min", "")),
            most=MOST_NODES,
        ),
        Field(
            "most",
            t("Auto scaling: most nodes"),
            number,
            value=str(scaling.get("max", "")),
            most=MOST_NODES,
        ),
    )


def _lines(name: str, label: str, help_: str, value: str) -> Field:
    return Field(name, label, FieldKind.LINES, help_, value, longest=64_000, rows=3)


def new_pool_name(t: Translate, name: str) -> str:
    """Raises Invalid."""
    if not _NAME.fullmatch(name):
        raise Invalid({"name": t("Wanted small letters, digits and hyphens.")})
    return name


def spec_of(t: Translate, values: Mapping[str, str]) -> Obj:
    """What `spec_fields` say; what is empty is None. Raises Invalid."""
    return {
        "os": values["os"],
        "labels": labels_of(t, "labels", values["labels"]) or None,
        "taints": taints_of(t, "taints", values["taints"]) or None,
        "tags": tags_of(t, "tags", values["tags"]) or None,
        "resourceGroup": values["group"] or None,
        "managed": True if values["managed"] else None,
        "autoscaling": _scaling(t, values["least"], values["most"]),
    }


def _scaling(t: Translate, least: str, most: str) -> Obj | None:
    """Raises Invalid."""
    if not least and not most:
        return None
    if not least or not most:
        missing = "most" if least else "least"
        raise Invalid({missing: t("Wanted both numbers, or none.")})
    if int(least) > int(most):
        words = t("Wanted at least {least}, found {most}.", least=least, most=most)
        raise Invalid({"most": words})
    return {"min": int(least), "max": int(most)}


def check_count(t: Translate, count: int, spec: Obj, field: str = "count") -> None:
    """`field`: where to say it. Raises Invalid."""
    scaling = spec.get("autoscaling")
    if scaling and not scaling["min"] <= count <= scaling["max"]:
        words = t(
            "Wanted {least} to {most}, as auto scaling allows; found {count}.",
            least=scaling["min"],
            most=scaling["max"],
            count=count,
        )
        raise Invalid({field: words})


def changes(before: Obj, after: Obj) -> Obj:
    """A merge patch of the spec: maps are merged, so what has gone is named."""
    return {key: _change(before.get(key), value) for key, value in after.items()}


def _change(before: object, after: object) -> object:
    if isinstance(before, dict) and isinstance(after, dict):
        return {**dict.fromkeys(before), **after}
    return after
