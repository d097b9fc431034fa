"""Only the scheduler may write which card a pod has.

An allocation is a set of annotations of the pod. The containers' environment and limit file are
resolved from them (`injection.py`), so whoever can write them can give a pod any card, or lift its
limit. Every user with the right to edit pods can write annotations; RBAC cannot tell single ones
apart. So the webhook compares these annotations before and after each write, on every way there
is to write them: pods, their status, ephemeral containers and Bindings (`registration.py`).

Annotations of other programs that give a card to a container are held to the same rule, on all
pods: else a pod without any request could take the card of another tenant.
"""

from collections.abc import Mapping

from gpupool.contract.device_annotations import names_devices
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_MEM_ASSIGNED,
    ANNOTATION_MEM_ASSUME_TIME,
    ANNOTATION_MEM_DEV,
    ANNOTATION_MEM_IDX,
    ANNOTATION_MEM_POD,
    ANNOTATION_SHRINKING,
    GROUP_CARD_UNITS,
    GROUP_DEVICES,
    GROUP_INDEXES,
    GROUP_LIMITS,
    GROUP_NO_ISOLATION,
)
from kubeclient.objects import Obj

# The match conditions in `registration.py` are made from these tuples, and from those of device
# annotations: the API server does not even ask about a key that is missing here. Requests of users
# (resize, no isolation) stay free.
PROTECTED_KEYS = (
    ANNOTATION_ALLOCATION,
    ANNOTATION_MEM_IDX,
    ANNOTATION_MEM_POD,
    ANNOTATION_MEM_DEV,
    ANNOTATION_MEM_ASSIGNED,
    ANNOTATION_MEM_ASSUME_TIME,
    ANNOTATION_SHRINKING,
)
# Prefixes of annotations with one key for each container: <group>/<container>.
PROTECTED_GROUPS = (
    GROUP_DEVICES,
    GROUP_INDEXES,
    GROUP_CARD_UNITS,
    GROUP_NO_ISOLATION,
    GROUP_LIMITS,
)


def forged(old: Obj | None, new: Obj) -> list[str]:
    """Complaints about annotations of an allocation that were added, changed or removed."""
    before, after = _protected(old), _protected(new)
    return [
        f"metadata.annotations[{key}]: wanted {_said(before.get(key))}, because only the "
        f"scheduler writes it, found {_said(after.get(key))}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _said(value: str | None) -> str:
    """The value on one line, shortened."""
    return "none" if value is None else f'"{" ".join(value.split())[:60]}"'


def _protected(obj: Obj | None) -> Mapping[str, str]:
    annotations = ((obj or {}).get("metadata") or {}).get("annotations") or {}
    return {
        key: value
        for key, value in annotations.items()
        if key in PROTECTED_KEYS
        or key.partition("/")[0] in PROTECTED_GROUPS
        or names_devices(key, value)
    }
