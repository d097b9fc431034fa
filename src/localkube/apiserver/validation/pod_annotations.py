"""Annotations of pods that mean something to Kubernetes: the mirror pod's and the deletion cost.

The old annotations for seccomp, AppArmor and tolerations are plain annotations: pods have had
fields for all three for years, and nothing here reads the annotations.
"""

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import Errors, forbidden_field, invalid
from localkube.apiserver.validation.pod_spec import MIRROR

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def pod_annotations(errors: Errors, metadata: Obj, spec: Obj, path: str) -> None:
    annotations = metadata.get("annotations")
    if not annotations:
        return
    if MIRROR in annotations and "nodeName" not in spec:
        what = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], what))
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_cost(cost):
        errors.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))


def pod_annotations_update(errors: Errors, new: Obj, old: Obj) -> None:
    after, before = (obj["metadata"].get("annotations", {}).get(MIRROR) for obj in (new, old))
    if after != before:
        act = "add" if before is None else "remove or update"
        what = f"may not {act} mirror pod annotation"
        errors.append(forbidden_field(f"metadata.annotations[{MIRROR}]", what))
    pod_annotations(errors, new["metadata"], new["spec"], "metadata.annotations")


def _is_cost(text: str) -> bool:
    """As it is written back: no plus sign, no leading zeros, 32 bits."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        return False
    return str(int(text)) == text and -(2**31) <= int(text) < 2**31
