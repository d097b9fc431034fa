"""Rows of nodes, namespaces, events and the small objects around pods."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.tables.durations import UNKNOWN, since
from localkube.apiserver.tables.texts import (
    NONE,
    age,
    condition_status,
    name,
    spec_of,
    status_of,
)

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def node(thing: Obj, now_s: float) -> list[Any]:
    status = status_of(thing)
    about = status.get("nodeInfo") or {}
    return [
        name(thing),
        _node_state(thing),
        _roles(thing["metadata"].get("labels") or {}),
        age(thing, now_s),
        about.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        about.get("osImage") or UNKNOWN,
        about.get("kernelVersion") or UNKNOWN,
        about.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_state(thing: Obj) -> str:
    match condition_status(thing, "Ready"):
        case None:
            state = "Unknown"
        case "True":
            state = "Ready"
        case _:
            state = "NotReady"
    unschedulable = spec_of(thing).get("unschedulable")
    return f"{state},SchedulingDisabled" if unschedulable else state


def _roles(labels: dict[str, str]) -> str:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL, ""))
    return ",".join(sorted(role for role in roles if role)) or NONE


def _address(status: Obj, kind: str) -> str:
    for each in status.get("addresses") or ():
        if each.get("type") == kind:
            address: str = each.get("address", "")
            return address
    return NONE


def namespace(thing: Obj, now_s: float) -> list[Any]:
    return [name(thing), status_of(thing).get("phase", ""), age(thing, now_s)]


def config_map(thing: Obj, now_s: float) -> list[Any]:
    count = len(thing.get("data") or ()) + len(thing.get("binaryData") or ())
    return [name(thing), count, age(thing, now_s)]


def secret(thing: Obj, now_s: float) -> list[Any]:
    return [name(thing), thing.get("type", ""), len(thing.get("data") or ()), age(thing, now_s)]


def name_and_age(thing: Obj, now_s: float) -> list[Any]:
    return [name(thing), age(thing, now_s)]


def lease(thing: Obj, now_s: float) -> list[Any]:
    holder = spec_of(thing).get("holderIdentity") or ""
    return [name(thing), holder, age(thing, now_s)]


def runtime_class(thing: Obj, now_s: float) -> list[Any]:
    return [name(thing), thing.get("handler", ""), age(thing, now_s)]


def priority_class(thing: Obj, now_s: float) -> list[Any]:
    return [
        name(thing),
        thing.get("value", 0),
        thing.get("globalDefault", False),
        age(thing, now_s),
        thing.get("preemptionPolicy", ""),
    ]


def disruption_budget(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    return [
        name(thing),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status_of(thing).get("disruptionsAllowed", 0),
        age(thing, now_s),
    ]


def resource_quota(thing: Obj, now_s: float) -> list[Any]:
    status = status_of(thing)
    hard, used = status.get("hard") or {}, status.get("used") or {}
    texts = {key: f"{key}: {used.get(key, '0')}/{hard[key]}" for key in sorted(hard)}
    limits = [text for key, text in texts.items() if key.startswith("limits.")]
    requests = [text for key, text in texts.items() if not key.startswith("limits.")]
    return [name(thing), ", ".join(requests), ", ".join(limits), age(thing, now_s)]


def event(thing: Obj, now_s: float) -> list[Any]:
    """In the words of either group: core events and events.k8s.io."""
    series = thing.get("series")
    first = _either(thing, "firstTimestamp", "deprecatedFirstTimestamp") or thing.get("eventTime")
    last = _either(thing, "lastTimestamp", "deprecatedLastTimestamp") or first
    count = _either(thing, "count", "deprecatedCount") or 1
    if series is not None:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    about = _either(thing, "involvedObject", "regarding") or {}
    kind = about.get("kind", "").lower()
    return [
        since(last, now_s),
        thing.get("type", ""),
        thing.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        _event_source(thing),
        (_either(thing, "message", "note") or "").strip(),
        since(first, now_s),
        count,
        name(thing),
    ]


def _event_source(thing: Obj) -> str:
    source = _either(thing, "source", "deprecatedSource") or {}
    reporter = _either(thing, "reportingComponent", "reportingController")
    component = source.get("component") or reporter or ""
    instance = source.get("host") or thing.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def _either(thing: Obj, core: str, newer: str) -> Any:
    return thing[core] if core in thing else thing.get(newer)
