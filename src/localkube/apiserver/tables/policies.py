"""Rows of access rules, admission webhooks, admission policies and devices."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.tables.texts import (
    UNSET,
    age,
    deleting,
    name,
    spec_of,
    status_of,
)


def role_binding(thing: Obj, now_s: float) -> list[Any]:
    role = thing.get("roleRef") or {}
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in thing.get("subjects") or ():
        text = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            text = f"{subject.get('namespace', '')}/{text}"
        named.setdefault(subject.get("kind", ""), []).append(text)
    return [
        name(thing),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(thing, now_s),
        ", ".join(named["User"]),
        ", ".join(named["Group"]),
        ", ".join(named["ServiceAccount"]),
    ]


def webhook_configuration(thing: Obj, now_s: float) -> list[Any]:
    return [name(thing), len(thing.get("webhooks") or ()), age(thing, now_s)]


def admission_policy(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    kind = spec.get("paramKind")
    shown = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    return [name(thing), len(spec.get("validations") or ()), shown, age(thing, now_s)]


def admission_policy_binding(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    return [name(thing), spec.get("policyName", ""), _param_ref(spec), age(thing, now_s)]


def _param_ref(spec: Obj) -> str:
    ref = spec.get("paramRef") or {}
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    selector = ref.get("selector")
    return UNSET if selector is None else _selector(selector)


def _selector(selector: Obj) -> str:
    """In the words of Go, as kube-apiserver prints it."""
    labels = sorted((selector.get("matchLabels") or {}).items())
    pairs = "".join(f"{key}: {value}," for key, value in labels)
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key', '')},Operator:{each.get('operator', '')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    expressions = f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},{expressions},}}"


def resource_claim(thing: Obj, now_s: float) -> list[Any]:
    status = status_of(thing)
    states = ["deleted"] if deleting(thing) else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    return [name(thing), ",".join(states) or "pending", age(thing, now_s)]


def resource_slice(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    return [
        name(thing),
        spec.get("nodeName", ""),
        spec.get("driver", ""),
        (spec.get("pool") or {}).get("name", ""),
        age(thing, now_s),
    ]
