"""Rows of signing requests, API services, flow schemas and priority levels."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.tables.durations import human_duration
from localkube.apiserver.tables.texts import (
    NONE,
    age,
    condition_status,
    name,
    spec_of,
    status_of,
)


def signing_request(thing: Obj, now_s: float) -> list[Any]:
    spec, status = spec_of(thing), status_of(thing)
    seconds = spec.get("expirationSeconds")
    types = {each.get("type") for each in status.get("conditions") or ()}
    state = next((kind for kind in ("Denied", "Approved") if kind in types), "Pending")
    state += ",Failed" if "Failed" in types else ""
    state += ",Issued" if status.get("certificate") else ""
    return [
        name(thing),
        age(thing, now_s),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else human_duration(seconds),
        state,
    ]


def api_service(thing: Obj, now_s: float) -> list[Any]:
    service = spec_of(thing).get("service")
    where = "Local"
    if service is not None:
        where = f"{service.get('namespace', '')}/{service.get('name', '')}"
    return [name(thing), where, _available(thing), age(thing, now_s)]


def _available(thing: Obj) -> str:
    for condition in status_of(thing).get("conditions") or ():
        if condition.get("type") == "Available":
            found, reason = condition.get("status", ""), condition.get("reason")
            return f"{found} ({reason})" if found != "True" and reason else found
    return "Unknown"


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


def flow_schema_order(thing: Obj) -> tuple[int, str]:
    """As they are tried on a request."""
    return spec_of(thing).get("matchingPrecedence", 0), name(thing)


def priority_level(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    limited = spec.get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    return [
        name(thing),
        spec.get("type", ""),
        limited.get("nominalConcurrencyShares", NONE),
        queuing.get("queues", NONE),
        queuing.get("handSize", NONE),
        queuing.get("queueLengthLimit", NONE),
        age(thing, now_s),
    ]
