"""PodIndex: on which nodes the pods are that somebody looks for, and those that keep others off.

For each `Finder` that a pod brought along there is a vector: how many held pods it finds on each
node. It is counted once when first asked for, and kept up with every hold and release after that.
Held pods carry terms of their own (keep such pods away, rather have them near); these are counted
by node as well, since they bind pods that come later.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

import numpy as np

from gpupool.core.request import PodRequest, PodTerm
from gpupool.core.selectors import LabelSelector
from gpupool.engine.policies.policy import Ints

MOST_FINDERS = 256


class Look(NamedTuple):
    """One condition on a pod."""

    selector: LabelSelector
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None


class Finder(NamedTuple):
    """Pods that meet all of `looks`."""

    looks: tuple[Look, ...]
    terminating: bool  # whether those count that are on their way out


class Bond(Enum):
    KEEPS_OFF = "required anti-affinity"
    WEIGHS = "preferred affinity, or anti-affinity if negative"


class Carried(NamedTuple):
    bond: Bond
    term: PodTerm
    weight: int


class PodIndex:
    def __init__(self, size: int) -> None:
        self.size = size
        self._found: OrderedDict[Finder, Ints] = OrderedDict()
        self._carried: dict[Carried, Ints] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}

    def count(self, pod: PodRequest, node: int, sign: int) -> None:
        for finder, counts in self._found.items():
            if self.finds(finder, pod):
                counts[node] += sign
        if not (pod.anti_affinity or pod.near or pod.affinity):
            return
        for carried in _carried_by(pod):
            counts = self._carried.get(carried, np.zeros(0, dtype=np.int32))
            if not len(counts):
                counts = self._carried[carried] = np.zeros(self.size, dtype=np.int32)
            counts[node] += sign
            if sign < 0 and not counts.any():
                del self._carried[carried]

    def found(self, finder: Finder, pods: Iterable[tuple[int, PodRequest]]) -> Ints:
        """How many each node has; `pods`: all that are held, with their nodes."""
        counts = self._found.get(finder)
        if counts is None:
            if len(self._found) >= MOST_FINDERS:
                self._found.popitem(last=False)
            counts = self._found[finder] = np.zeros(self.size, dtype=np.int32)
            for node, pod in pods:
                if self.finds(finder, pod):
                    counts[node] += 1
        self._found.move_to_end(finder)
        return counts

    def carried(self, bond: Bond) -> list[tuple[Carried, Ints]]:
        return [
            (carried, nodes) for carried, nodes in self._carried.items() if carried.bond is bond
        ]

    def concerns(self, pod: PodRequest) -> bool:
        """Whether a held pod carries a term about such pods."""
        return any(self.matches(look_of(carried.term), pod) for carried in self._carried)

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
        """None: it is gone. What depends on it is counted again when it is next asked for."""
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        for finder in list(self._found):
            if any(look.namespace_selector is not None for look in finder.looks):
                del self._found[finder]

    def grow(self, size: int) -> None:
        more = np.zeros(size - self.size, dtype=np.int32)
        for finder, counts in self._found.items():
            self._found[finder] = np.concatenate([counts, more])
        for carried, counts in self._carried.items():
            self._carried[carried] = np.concatenate([counts, more])
        self.size = size


def look_of(term: PodTerm) -> Look:
    return Look(term.selector, term.namespaces, term.namespace_selector)


def _carried_by(pod: PodRequest) -> Iterable[Carried]:
    for term in pod.anti_affinity:
        yield Carried(Bond.KEEPS_OFF, term, 0)
    for weight, term in pod.near:
        yield Carried(Bond.WEIGHS, term, weight)
    for term in pod.affinity:  # who needs company likes it to stay, as in kube-scheduler
        yield Carried(Bond.WEIGHS, term, 1)
