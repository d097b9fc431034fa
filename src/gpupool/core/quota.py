"""UnitsQuota: the part of a ResourceQuota that limits shared GPU memory in a namespace."""

from collections.abc import Callable
from dataclasses import dataclass

from gpupool.core.pods import PodRequest


@dataclass(frozen=True, slots=True)
class Scope:
    """A quota with scopes counts only pods that match all of them."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitsQuota:
    namespace: str
    name: str
    hard: int
    used: int  # as the API server counts: requests at the creation of pods
    scopes: tuple[Scope, ...] = ()

    def covers(self, pod: PodRequest) -> bool:
        return self.namespace == pod.namespace and all(_within(s, pod) for s in self.scopes)


def _within(scope: Scope, pod: PodRequest) -> bool:
    """An unknown scope matches: it is safer to give out too little than too much."""
    if scope.name == "PriorityClass":
        compare = _OPERATORS.get(scope.operator)
        return compare is None or compare(pod.priority_class, scope.values)
    check = _SCOPES.get(scope.name)
    return check is None or check(pod)


def _is_best_effort(pod: PodRequest) -> bool:
    return not (pod.resources.get("cpu") or pod.resources.get("memory"))


_SCOPES: dict[str, Callable[[PodRequest], bool]] = {
    "Terminating": lambda pod: pod.has_deadline,
    "NotTerminating": lambda pod: not pod.has_deadline,
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda pod: not _is_best_effort(pod),
}
_OPERATORS: dict[str, Callable[[str, tuple[str, ...]], bool]] = {
    "In": lambda name, values: name in values,
    "NotIn": lambda name, values: name not in values,
    "Exists": lambda name, _values: bool(name),
    "DoesNotExist": lambda name, _values: not name,
}
