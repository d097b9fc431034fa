"""Objects of a version that is not the stored one, to the stored version and back.

Two kinds need it: HorizontalPodAutoscaler (v1 and v2) and Event (core/v1 and events.k8s.io/v1).
Versions of a custom kind differ in their name alone here: what a webhook converts is another
matter (conversion/). Either function takes and returns whole objects with defaults applied; other
kinds pass through.
"""

from collections.abc import Callable, Mapping

from kubeclient.objects import Obj
from localkube.apiserver.defaults.convert_autoscaling import (
    autoscaler_to_v1,
    autoscaler_to_v2,
)
from localkube.apiserver.kinds import Kind

# events.k8s.io/v1 on the left, core/v1 on the right; what is not named is the same in both.
_EVENT_FIELDS = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_CORE_FIELDS = {core: new for new, core in _EVENT_FIELDS.items()}


def to_storage(obj: Obj, kind: Kind) -> Obj:
    if kind.custom:
        return obj | {"apiVersion": f"{kind.group}/{kind.storage_version}"}
    convert = _TO_STORAGE.get((kind.api_version, kind.kind))
    return obj if convert is None else convert(obj)


def from_storage(obj: Obj, kind: Kind) -> Obj:
    if kind.custom:
        return obj | {"apiVersion": kind.api_version}
    convert = _FROM_STORAGE.get((kind.api_version, kind.kind))
    return obj if convert is None else convert(obj)


def event_to_core(obj: Obj) -> Obj:
    event = {_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}
    # Always written in core/v1, even when empty.
    event.setdefault("reportingComponent", "")
    event.setdefault("reportingInstance", "")
    event.setdefault("source", {})
    return event | {"apiVersion": "v1"}


def event_from_core(obj: Obj) -> Obj:
    event = {_CORE_FIELDS.get(key, key): value for key, value in obj.items()}
    for key in ("reportingController", "reportingInstance"):
        if event.get(key) == "":
            del event[key]
    event.setdefault("deprecatedSource", {})
    return event | {"apiVersion": "events.k8s.io/v1"}


_TO_STORAGE: Mapping[tuple[str, str], Callable[[Obj], Obj]] = {
    ("events.k8s.io/v1", "Event"): event_to_core,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): autoscaler_to_v2,
}
_FROM_STORAGE: Mapping[tuple[str, str], Callable[[Obj], Obj]] = {
    ("events.k8s.io/v1", "Event"): event_from_core,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): autoscaler_to_v1,
}
