"""RuntimeClass: adds the overhead and the node selector of its class to a pod."""

from kubeclient.objects import Obj
from kubeclient.quantity import parse
from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    refusal,
)

_CLASSES = "runtimeclasses.node.k8s.io"


def apply_runtime_class(attributes: Attributes, cluster: ClusterView) -> None:
    pod = attributes.created
    found = _class_of(attributes, pod, cluster) if pod is not None else None
    if pod is None or found is None:
        return
    spec = pod["spec"]
    overhead = (found.get("overhead") or {}).get("podFixed")
    if found.get("overhead") is not None:
        if spec.get("overhead") and not _equal(spec["overhead"], overhead):
            raise refusal(attributes, _MISMATCH)
        if overhead:
            spec["overhead"] = dict(overhead)
    scheduling = found.get("scheduling")
    if scheduling is not None:
        _merge_selector(attributes, spec, scheduling.get("nodeSelector") or {})
        _merge_tolerations(spec, scheduling.get("tolerations") or [])


def check_overhead(attributes: Attributes, cluster: ClusterView) -> None:
    pod = attributes.created
    if pod is None:
        return
    found = _class_of(attributes, pod, cluster) or {}
    overhead = pod["spec"].get("overhead")
    if found.get("overhead") is not None:
        if not _equal(overhead or {}, found["overhead"].get("podFixed") or {}):
            raise refusal(attributes, _MISMATCH)
    elif overhead is not None:
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise refusal(attributes, why)


_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


def _class_of(attributes: Attributes, pod: Obj, cluster: ClusterView) -> Obj | None:
    name = pod["spec"].get("runtimeClassName")
    if name is None:
        return None
    found = cluster.get(_CLASSES, "", name)
    if found is None:
        raise refusal(attributes, f'pod rejected: RuntimeClass "{name}" not found')
    return found


def _equal(left: dict[str, str], right: dict[str, str] | None) -> bool:
    right = right or {}
    return left.keys() == right.keys() and all(parse(left[k]) == parse(right[k]) for k in left)


def _merge_selector(attributes: Attributes, spec: Obj, wanted: dict[str, str]) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in wanted.items():
        if selector.get(key, value) != value:
            ours = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            theirs = f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            raise refusal(attributes, f"conflict: {ours}; {theirs}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector


def _merge_tolerations(spec: Obj, wanted: list[Obj]) -> None:
    """Without those that one of the others makes superfluous."""
    merged: list[Obj] = []
    every = [*(spec.get("tolerations") or ()), *wanted]
    for i, toleration in enumerate(every):
        later = (other for other in every[i + 1 :] if other != toleration)
        if not any(_covers(other, toleration) for other in (*merged, *later)):
            merged.append(dict(toleration))
    if merged:
        spec["tolerations"] = merged


def _covers(wide: Obj, narrow: Obj) -> bool:
    if wide == narrow:
        return True
    if wide.get("key", "") not in ("", narrow.get("key", "")):
        return False
    if wide.get("effect", "") not in ("", narrow.get("effect", "")):
        return False
    if wide.get("tolerationSeconds") is not None:
        narrow_s = narrow.get("tolerationSeconds")
        if narrow_s is None or wide["tolerationSeconds"] < narrow_s:
            return False
    if wide.get("operator") == "Exists":
        return True
    same = (wide.get("operator", "Equal"), wide.get("value", ""))
    return same == (narrow.get("operator", "Equal"), narrow.get("value", ""))
