"""Nobody but the scheduler says which card a pod has."""

from collections.abc import Mapping

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

PROTECTED_KEYS = (
    ANNOTATION_ALLOCATION,
    ANNOTATION_MEM_IDX,
    ANNOTATION_MEM_POD,
    ANNOTATION_MEM_DEV,
    ANNOTATION_MEM_ASSIGNED,
    ANNOTATION_MEM_ASSUME_TIME,
    ANNOTATION_SHRINKING,
)
PROTECTED_GROUPS = (
    GROUP_DEVICES,
    GROUP_INDEXES,
    GROUP_CARD_UNITS,
    GROUP_NO_ISOLATION,
    GROUP_LIMITS,
)


def forged(old: Obj | None, new: Obj) -> list[str]:
    """Complaints about what differs, or is new, among the annotations of an allocation."""
    before, after = _protected(old), _protected(new)
    return [
        f"metadata.annotations[{key}]: wanted {_said(before.get(key))}, because only the "
        f"scheduler writes it, found {_said(after.get(key))}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _said(value: str | None) -> str:
    """In one line."""
    return "none" if value is None else f'"{" ".join(value.split())[:60]}"'


def _protected(obj: Obj | None) -> Mapping[str, str]:
    annotations = ((obj or {}).get("metadata") or {}).get("annotations") or {}
    return {
        key: value
        for key, value in annotations.items()
        if key in PROTECTED_KEYS or key.partition("/")[0] in PROTECTED_GROUPS
    }
