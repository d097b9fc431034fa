"""PodIndex: counts of pods by node, for affinity, anti-affinity and topology spread.

For each `Finder` (the selector of a term) there is a vector: how many held pods it matches on each
node. It is counted when it is first needed, and updated with every hold and release after that.
Held pods have terms of their own (required anti-affinity, preferred affinity); these are counted
by node as well, because they constrain pods that come later.

There may be many of both, and nearly all name one label with one value. They are stored under that
label (`Hint`), so a pod is compared only with those for labels that it has.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Set
from enum import Enum
from typing import NamedTuple

import numpy as np

from gpupool.core.pods import PodRequest, PodTerm
from gpupool.engine.policies.policy import Ints
from kubeclient.selectors import LabelSelector, Operator

MOST_FINDERS = 1024
_ONE_VALUE = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)


class Look(NamedTuple):
    """One condition on a pod."""

    selector: LabelSelector
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None


class Finder(NamedTuple):
    """Pods that meet all of `looks`."""

    looks: tuple[Look, ...]
    terminating: bool  # whether terminating pods count


class Bond(Enum):
    KEEPS_OFF = "required anti-affinity"
    WEIGHS = "preferred affinity, or anti-affinity if negative"


class Carried(NamedTuple):
    bond: Bond
    term: PodTerm
    weight: int


Hint = tuple[str, str]  # a label that a pod must have; empty: none
_NO_HINT: Hint = ("", "")


class PodIndex:
    def __init__(self, size: int) -> None:
        self.size = size
        self._found: OrderedDict[Finder, Ints] = OrderedDict()
        self._finders: dict[Hint, set[Finder]] = {}
        self._carried: dict[Hint, dict[Carried, Ints]] = {}
        self._keys: Counter[str] = Counter()  # of labels, by terms of required anti-affinity
        self.namespaces: dict[str, Mapping[str, str]] = {}

    def count(self, pod: PodRequest, node: int, sign: int) -> None:
        if self._finders:
            for hint in _hints(pod):
                for finder in self._finders.get(hint, ()):
                    if self.finds(finder, pod):
                        self._found[finder][node] += sign
        if not (pod.anti_affinity or pod.near or pod.affinity):
            return
        for carried in _carried_by(pod):
            self._count_carried(carried, node, sign)

    def _count_carried(self, carried: Carried, node: int, sign: int) -> None:
        hint = _hint_of(carried.term.selector)
        alike = self._carried.setdefault(hint, {})
        if carried not in alike:
            alike[carried] = np.zeros(self.size, dtype=np.int32)
            self._count_keys(carried, 1)
        counts = alike[carried]
        counts[node] += sign
        # Terms come and go with workloads: without this, those of past workloads would pile up.
        if sign < 0 and not counts.any():
            del alike[carried]
            self._count_keys(carried, -1)
            if not alike:
                del self._carried[hint]

    def _count_keys(self, carried: Carried, sign: int) -> None:
        if carried.bond is not Bond.KEEPS_OFF:
            return
        for requirement in carried.term.selector.requirements:
            self._keys[requirement.key] += sign
            if not self._keys[requirement.key]:
                del self._keys[requirement.key]

    @property
    def keys_that_keep_off(self) -> Set[str]:
        """Keys of labels that required anti-affinity of held pods looks at.

        Other labels of a pod cannot decide whether held pods keep it off a node.
        """
        return self._keys.keys()

    def found(self, finder: Finder, pods: Iterable[tuple[int, PodRequest]]) -> Ints:
        """The count for each node. `pods`: all held pods with their nodes, to count them once."""
        counts = self._found.get(finder)
        if counts is None:
            if len(self._found) >= MOST_FINDERS:
                self._forget(next(iter(self._found)))
            counts = self._found[finder] = np.zeros(self.size, dtype=np.int32)
            # A pod must match all looks, so the label of the first one is enough to find the
            # finder.
            hint = _hint_of(finder.looks[0].selector)
            self._finders.setdefault(hint, set()).add(finder)
            key, value = hint
            for node, pod in pods:
                # Of many thousand pods few have the label: the others need no closer look.
                if (not key or pod.labels.get(key) == value) and self.finds(finder, pod):
                    counts[node] += 1
        self._found.move_to_end(finder)
        return counts

    def _forget(self, finder: Finder) -> None:
        del self._found[finder]
        hint = _hint_of(finder.looks[0].selector)
        self._finders[hint].discard(finder)
        if not self._finders[hint]:
            del self._finders[hint]

    def carried_about(self, pod: PodRequest) -> list[tuple[Carried, Ints]]:
        """Terms of held pods that match this pod, and how many pods on each node have them."""
        return [
            (carried, counts)
            for hint in _hints(pod)
            for carried, counts in self._carried.get(hint, {}).items()
            if self.matches(look_of(carried.term), pod)
        ]

    def concerns(self, pod: PodRequest) -> bool:
        """Whether a term of some held pod matches this pod."""
        return bool(self._carried) and bool(self.carried_about(pod))

    def finds(self, finder: Finder, pod: PodRequest) -> bool:
        if pod.terminating and not finder.terminating:
            return False
        return all(self.matches(look, pod) for look in finder.looks)

    def matches(self, look: Look, pod: PodRequest) -> bool:
        if pod.namespace not in look.namespaces and (
            look.namespace_selector is None
            or not look.namespace_selector.matches(self.namespaces.get(pod.namespace, {}))
        ):
            return False
        return look.selector.matches(pod.labels)

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """None: the namespace is gone. Counts that depend on namespace labels are dropped."""
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        for finder in list(self._found):
            if any(look.namespace_selector is not None for look in finder.looks):
                self._forget(finder)

    def grow(self, size: int) -> None:
        more = np.zeros(size - self.size, dtype=np.int32)
        for finder, counts in self._found.items():
            self._found[finder] = np.concatenate([counts, more])
        for alike in self._carried.values():
            for carried, counts in alike.items():
                alike[carried] = np.concatenate([counts, more])
        self.size = size


def look_of(term: PodTerm) -> Look:
    return Look(term.selector, term.namespaces, term.namespace_selector)


def _carried_by(pod: PodRequest) -> Iterable[Carried]:
    for term in pod.anti_affinity:
        yield Carried(Bond.KEEPS_OFF, term, 0)
    for weight, term in pod.near:
        yield Carried(Bond.WEIGHS, term, weight)
    for term in pod.affinity:  # required affinity also prefers, as in kube-scheduler
        yield Carried(Bond.WEIGHS, term, 1)


def _hints(pod: PodRequest) -> Iterator[Hint]:
    yield _NO_HINT
    yield from pod.labels.items()


def _hint_of(selector: LabelSelector) -> Hint:
    """A label that every pod has that the selector matches; none if there is no such label."""
    for requirement in selector.requirements:
        if requirement.operator in _ONE_VALUE and len(requirement.values) == 1:
            return (requirement.key, requirement.values[0])
    return _NO_HINT
