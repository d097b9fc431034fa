"""Manifests, as `kubectl apply` takes them -> the pods that their objects would make.

Nothing is checked or filled in here: the API server does that (`gpupool.cli.manifests`).
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kubeclient.objects import Obj

# Where an object has the template of its pods. Kinds that are not listed may have one in the place
# where Deployments have it: many custom resources do.
_PLACES: dict[str, tuple[str, ...]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
_USUAL_PLACE = ("spec", "template")
# Fields of a workload's spec that say how many pods it has. Other kinds may mean something else.
_OF_A_JOB = ("parallelism", "completions")
_COUNTS: dict[str, tuple[str, ...]] = {
    "Deployment": ("replicas",),
    "StatefulSet": ("replicas",),
    "ReplicaSet": ("replicas",),
    "Job": _OF_A_JOB,
    "CronJob": _OF_A_JOB,
}


class PodTemplate(NamedTuple):
    """The pods of one object."""

    kind: str  # of the object
    pod: Obj  # with no more than the manifest says, and the object's name
    copies: int = 1  # how many of them the object makes at the same time


def objects_of(document: object) -> Iterator[Obj]:
    """The object of a document; the objects of a List."""
    if not isinstance(document, dict):
        return
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        for item in items:
            yield from objects_of(item)
    else:
        yield document


def pod_templates(objects: Iterable[Obj], namespace: str) -> list[PodTemplate]:
    """Objects that make no pods are left out. `namespace`: for those that name none."""
    found = (_template(obj, namespace) for obj in objects)
    return [template for template in found if template is not None]


def _template(obj: Obj, namespace: str) -> PodTemplate | None:
    kind, metadata = str(obj.get("kind", "")), _map(obj.get("metadata"))
    template: Any = obj
    for step in _PLACES.get(kind, _USUAL_PLACE):
        template = _map(template).get(step)
    spec = _map(template).get("spec")
    if not isinstance(spec, dict) or "containers" not in spec:
        return None
    name = str(metadata.get("name") or metadata.get("generateName") or kind.lower())
    of_pod = _map(_map(template).get("metadata"))
    kept = {key: of_pod[key] for key in ("labels", "annotations") if key in of_pod}
    where = str(metadata.get("namespace") or namespace)
    pod: Obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**kept, "name": name, "namespace": where},
        "spec": spec,
    }
    return PodTemplate(kind, pod, _copies(obj))


def wrong_count(obj: Obj) -> tuple[str, object] | None:
    """The field with a number of pods that the API server would refuse, and what it has."""
    spec = _counting_spec(obj)
    for name in _COUNTS.get(str(obj.get("kind")), ()):
        found = spec.get(name)
        if found is not None and _count(found) is None:
            return name, found
    return None


def _copies(obj: Obj) -> int:
    """1 where the object does not say, or says what is no number (`wrong_count`)."""
    spec = _counting_spec(obj)
    number = _count(spec.get("replicas", spec.get("parallelism")))
    # A Job does not run more of them than have still to be done.
    most = _count(spec.get("completions"))
    found = 1 if number is None else number
    return found if most is None else min(found, most)


def _counting_spec(obj: Obj) -> Obj:
    spec = _map(obj.get("spec"))
    if obj.get("kind") == "CronJob":
        return _map(_map(spec.get("jobTemplate")).get("spec"))
    return spec


def _count(value: object) -> int | None:
    is_one = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_one else None  # type: ignore[return-value]


def _map(value: object) -> Obj:
    return value if isinstance(value, dict) else {}
