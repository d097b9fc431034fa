"""likeness: equal for pods that are alike. If one of them fits nowhere now, none of them does.

Every field of a request counts, except those listed here. So a new field of PodRequest counts until
somebody decides otherwise.

Of the labels those count that a term looks at: terms of the pod itself, and required anti-affinity
of held pods. The pods of one Job differ in a label or two, and nearly always nobody looks at these.
So the likeness changes when other keys matter to held pods (`PodIndex.keys_that_keep_off`).
"""

from collections.abc import Hashable, Iterator
from dataclasses import fields
from operator import attrgetter

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from kubeclient.selectors import LabelSelector

_NAMES = {"uid", "name", "labels"}
# Read only of pods that are held, and by quotas.
_OF_HELD_PODS = {"terminating", "started", "has_deadline", "priority_class"}
_parts = attrgetter(
    *(field.name for field in fields(PodRequest) if field.name not in _NAMES | _OF_HELD_PODS)
)


def likeness(cluster: ClusterModel, pod: PodRequest) -> Hashable:
    return (_hashable(_parts(pod)), _seen_of_labels(cluster, pod))


def _hashable(parts: tuple[object, ...]) -> Hashable:
    return tuple([tuple(sorted(p.items())) if isinstance(p, dict) else p for p in parts])


def _seen_of_labels(cluster: ClusterModel, pod: PodRequest) -> Hashable:
    """The labels that a term looks at."""
    keys = cluster.index.keys_that_keep_off
    if pod.affinity or pod.anti_affinity or pod.spreads:
        keys = keys | {key for selector in _own_selectors(pod) for key in _keys(selector)}
    return tuple([(key, pod.labels[key]) for key in sorted(keys) if key in pod.labels])


def _own_selectors(pod: PodRequest) -> Iterator[LabelSelector]:
    """Whether a pod matches its own terms decides where it fits."""
    for term in (*pod.affinity, *pod.anti_affinity):
        yield term.selector
    for spread in pod.spreads:
        yield spread.selector


def _keys(selector: LabelSelector) -> Iterator[str]:
    return (requirement.key for requirement in selector.requirements)
