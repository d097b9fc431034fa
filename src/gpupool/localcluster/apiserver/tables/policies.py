"""Rows of access rules, admission, certificates, API services, flow control and devices."""

from typing import Any

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver.tables.durations import human_duration
from gpupool.localcluster.apiserver.tables.texts import (
    NONE,
    UNSET,
    age,
    condition_status,
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
    found = spec.get("paramKind")
    kind = f"{found.get('apiVersion', '')}/{found.get('kind', '')}" if found else UNSET
    return [name(thing), len(spec.get("validations") or ()), kind, age(thing, now_s)]


def admission_policy_binding(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    reference = spec.get("paramRef") or {}
    parameter = UNSET
    if reference.get("name"):
        parameter = f"{reference.get('namespace') or '*'}/{reference['name']}"
    return [name(thing), spec.get("policyName", ""), parameter, age(thing, now_s)]


def signing_request(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    wanted_s = spec.get("expirationSeconds")
    return [
        name(thing),
        age(thing, now_s),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if wanted_s is None else human_duration(wanted_s),
        _signing_state(thing),
    ]


def _signing_state(thing: Obj) -> str:
    status = status_of(thing)
    kinds = {condition.get("type") for condition in status.get("conditions") or ()}
    state = next((k for k in ("Denied", "Approved") if k in kinds), "Pending")
    if "Failed" in kinds:
        state += ",Failed"
    return f"{state},Issued" if status.get("certificate") else state


def api_service(thing: Obj, now_s: float) -> list[Any]:
    service = spec_of(thing).get("service")
    where = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    state = "Unknown"
    for condition in status_of(thing).get("conditions") or ():
        if condition.get("type") == "Available":
            state = condition.get("status", "")
            if state != "True" and condition.get("reason"):
                state = f"{state} ({condition['reason']})"
            break
    return [name(thing), where, state, age(thing, now_s)]


def flow_schema(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    return [
        name(thing),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", NONE),
        age(thing, now_s),
        condition_status(thing, "Dangling") or "?",
    ]


def priority_level(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing") or {}
    return [
        name(thing),
        spec.get("type", ""),
        NONE if limited is None else limited.get("nominalConcurrencyShares", 0),
        queuing.get("queues", NONE),
        queuing.get("handSize", NONE),
        queuing.get("queueLengthLimit", NONE),
        age(thing, now_s),
    ]


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
