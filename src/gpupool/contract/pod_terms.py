"""Pod affinity and topology spread of a pod object -> values, in Kubernetes' meaning.

A term without namespaces and namespace selector means the namespace of the pod. `matchLabelKeys`
and `mismatchLabelKeys` become requirements with the pod's own label values; newer API servers do
that themselves.
"""

from collections.abc import Iterator

from gpupool.core.pods import PodTerm, Spread
from kubeclient.objects import Obj
from kubeclient.selectors import (
    NOTHING,
    LabelSelector,
    Operator,
    Requirement,
    from_object,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def required_terms(pod: Obj, kind: str) -> tuple[PodTerm, ...]:
    """`kind`: podAffinity or podAntiAffinity. Raises SelectorError."""
    return tuple(_term(term, pod) for term in _affinity(pod, kind).get(_REQUIRED) or ())


def weighed_terms(pod: Obj) -> tuple[tuple[int, PodTerm], ...]:
    """Preferred affinity, and anti-affinity with weights below 0. Raises SelectorError."""
    return tuple(
        (sign * term["weight"], _term(term["podAffinityTerm"], pod))
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1))
        for term in _affinity(pod, kind).get(_PREFERRED) or ()
    )


def spreads(pod: Obj) -> tuple[Spread, ...]:
    """Raises SelectorError."""
    return tuple(
        Spread(
            topology_key=spread["topologyKey"],
            selector=_selector(spread, pod),
            max_skew=spread["maxSkew"],
            required=spread["whenUnsatisfiable"] == "DoNotSchedule",
            min_domains=spread.get("minDomains") or 1,
            honors_affinity=spread.get("nodeAffinityPolicy") != "Ignore",
            honors_taints=spread.get("nodeTaintsPolicy") == "Honor",
        )
        for spread in pod["spec"].get("topologySpreadConstraints") or ()
    )


def _affinity(pod: Obj, kind: str) -> Obj:
    return (pod["spec"].get("affinity") or {}).get(kind) or {}


def _term(term: Obj, pod: Obj) -> PodTerm:
    named = tuple(term.get("namespaces") or ())
    selector = term.get("namespaceSelector")
    if not named and selector is None:
        named = (pod["metadata"]["namespace"],)
    return PodTerm(
        selector=_selector(term, pod),
        topology_key=term["topologyKey"],
        namespaces=named,
        namespace_selector=None if selector is None else from_object(selector),
    )


def _selector(holder: Obj, pod: Obj) -> LabelSelector:
    selector = from_object(holder.get("labelSelector"))
    if selector is NOTHING:
        return NOTHING
    return LabelSelector((*selector.requirements, *_by_own_labels(holder, pod)))


def _by_own_labels(holder: Obj, pod: Obj) -> Iterator[Requirement]:
    labels = pod["metadata"].get("labels") or {}
    for field, operator in (
        ("matchLabelKeys", Operator.IN),
        ("mismatchLabelKeys", Operator.NOT_IN),
    ):
        for key in holder.get(field) or ():
            if key in labels:
                yield Requirement(key, operator, (labels[key],))
