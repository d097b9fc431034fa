"""Rows of access rules, admission webhooks and devices."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.tables.texts import (
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
