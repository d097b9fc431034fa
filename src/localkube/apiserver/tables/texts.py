"""Cells that several kinds have alike, in the words of kube-apiserver."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubeclient.objects import Obj
from kubeclient.selectors import SelectorError, from_object
from localkube.apiserver.tables.durations import since

NONE = "<none>"
UNSET = "<unset>"

_SHOWN = 3  # of longer lists
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def name(thing: Obj) -> str:
    text: str = thing["metadata"].get("name", "")
    return text


def spec_of(thing: Obj) -> Obj:
    return thing.get("spec") or {}


def status_of(thing: Obj) -> Obj:
    return thing.get("status") or {}


def age(thing: Obj, now_s: float) -> str:
    return since(thing["metadata"].get("creationTimestamp"), now_s)


def deleting(thing: Obj) -> bool:
    return thing["metadata"].get("deletionTimestamp") is not None


def label_text(labels: Mapping[str, str] | None) -> str:
    if not labels:
        return NONE
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def selector_text(selector: Obj | None) -> str:
    try:
        return from_object(selector).text or NONE
    except SelectorError:
        return "<error>"


def containers_of(template: Obj | None) -> tuple[str, str]:
    """Names and images of a pod template's containers."""
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    return (
        ",".join(c.get("name", "") for c in containers),
        ",".join(c.get("image", "") for c in containers),
    )


def some_of(texts: Sequence[str], empty: str = UNSET) -> str:
    """The first few, and how many more there are."""
    shown = ",".join(texts[:_SHOWN])
    if len(texts) > _SHOWN:
        return f"{shown} + {len(texts) - _SHOWN} more..."
    return shown or empty


def access_modes(modes: Sequence[str] | None) -> str:
    wanted = set(modes or ())
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in wanted)


def storage_class(thing: Obj) -> str:
    """The class of a volume or a claim; an annotation of old wins."""
    annotations = thing["metadata"].get("annotations") or {}
    found = annotations.get(_CLASS_ANNOTATION, spec_of(thing).get("storageClassName"))
    return found or ""


def load_balancer(status: Obj | None) -> str:
    """Addresses that a load balancer has; an IP wins over a host name."""
    ingress = ((status or {}).get("loadBalancer") or {}).get("ingress") or ()
    found = {each.get("ip") or each.get("hostname") for each in ingress}
    return ",".join(sorted(text for text in found if text))


def condition_status(thing: Obj, kind: str) -> str | None:
    conditions: Sequence[Any] = status_of(thing).get("conditions") or ()
    for condition in conditions:
        if condition.get("type") == kind:
            found: str = condition.get("status", "")
            return found
    return None
