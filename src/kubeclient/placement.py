"""Parses what decides whether a pod may run on a node, with the rules of kube-scheduler.

Resources, taints and tolerations, node selectors and node affinity, host ports.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kubeclient.objects import Obj
from kubeclient.quantity import milli_value, parse, value
from kubeclient.selectors import integer


class Effect(StrEnum):
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str


# Tolerations and terms are parts of keys. They are hashed for every pod, and tuples are fast at it.
class Toleration(NamedTuple):
    key: str  # empty: every key
    exists: bool  # any value will do
    value: str
    effect: str  # empty: every effect

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        # Kubernetes allows an empty key only with the operator Exists.
        return self.exists or (bool(self.key) and self.value == taint.value)


class NodeOperator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


class NodeRequirement(NamedTuple):
    key: str
    operator: NodeOperator
    values: tuple[str, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case NodeOperator.IN:
                return found in self.values
            case NodeOperator.NOT_IN:
                # True also for a node without the label, as in Kubernetes.
                return found not in self.values
            case NodeOperator.EXISTS:
                return found is not None
            case NodeOperator.DOES_NOT_EXIST:
                return found is None
            case NodeOperator.GREATER | NodeOperator.LESS:
                return self._compares(found)

    def _compares(self, found: str | None) -> bool:
        left, right = integer(found), integer(self.values[0] if self.values else None)
        if left is None or right is None:
            return False
        return left > right if self.operator is NodeOperator.GREATER else left < right


class NodeTerm(NamedTuple):
    """All requirements must hold. An empty term matches no node, as in Kubernetes."""

    labels: tuple[NodeRequirement, ...] = ()
    fields: tuple[NodeRequirement, ...] = ()  # metadata.name is the only field there is

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if not self.labels and not self.fields:
            return False
        return all(r.matches(labels) for r in self.labels) and all(
            r.matches({"metadata.name": name}) for r in self.fields
        )


@dataclass(frozen=True, slots=True)
class HostPort:
    ip: str  # "0.0.0.0": every address
    protocol: str
    port: int

    def collides(self, other: "HostPort") -> bool:
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.ip == other.ip or "0.0.0.0" in (self.ip, other.ip)


def node_term(term: Obj) -> NodeTerm:
    return NodeTerm(
        labels=tuple(_requirement(r) for r in term.get("matchExpressions") or ()),
        fields=tuple(_requirement(r) for r in term.get("matchFields") or ()),
    )


def _requirement(requirement: Obj) -> NodeRequirement:
    return NodeRequirement(
        requirement["key"],
        NodeOperator(requirement["operator"]),
        tuple(requirement.get("values") or ()),
    )


def required_nodes(spec: Obj) -> tuple[NodeTerm, ...] | None:
    """The required node affinity of a pod: one of the terms must match. None: the pod has none."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return tuple(node_term(term) for term in required["nodeSelectorTerms"]) if required else None


def node_selector(spec: Obj) -> tuple[tuple[str, str], ...]:
    # Sorted, because callers use it as part of keys: equal selectors must be equal tuples.
    return tuple(sorted((spec.get("nodeSelector") or {}).items()))


def selects_node(
    selector: Iterable[tuple[str, str]],
    terms: tuple[NodeTerm, ...] | None,
    name: str,
    labels: Mapping[str, str],
) -> bool:
    """Whether a pod's node selector and required node affinity allow this node."""
    if any(labels.get(key) != wanted for key, wanted in selector):
        return False
    return terms is None or any(term.matches(name, labels) for term in terms)


_TOLERATION_OPERATORS = ("", "Equal", "Exists")


def tolerations(spec: Obj) -> tuple[Toleration, ...]:
    """Those with an operator that is not known (a newer Kubernetes has some) tolerate nothing."""
    return tuple(
        Toleration(
            key=toleration.get("key", ""),
            exists=toleration.get("operator") == "Exists",
            value=toleration.get("value", ""),
            effect=toleration.get("effect", ""),
        )
        for toleration in spec.get("tolerations") or ()
        if toleration.get("operator", "") in _TOLERATION_OPERATORS
    )


def taints(spec: Obj) -> tuple[Taint, ...]:
    """The taints of a node, from its spec."""
    return tuple(
        Taint(taint["key"], taint.get("value", ""), taint["effect"])
        for taint in spec.get("taints") or ()
    )


def host_ports(spec: Obj) -> Iterable[HostPort]:
    # Other init containers have ended before the pod runs; kube-scheduler ignores their ports.
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*sidecars, *spec["containers"]):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield HostPort(
                    port.get("hostIP") or "0.0.0.0",
                    port.get("protocol", "TCP"),
                    port["hostPort"],
                )


MOST = 2**63 - 1  # a larger amount counts as this: quantities like 1e400 are valid


def amounts(resources: Obj | None) -> dict[str, int]:
    """A resource list as whole numbers: CPU in thousandths, all else in units, rounded up.

    Each is at least 0 and at most MOST. Raises ParseError.
    """
    return {name: amount(name, text) for name, text in (resources or {}).items()}


def amount(name: str, text: str) -> int:
    """Of the resource `name`, as in `amounts`. Raises ParseError."""
    found = milli_value(parse(text)) if name == "cpu" else value(parse(text))
    return min(max(found, 0), MOST)


def pod_resources(pod: Obj) -> dict[str, int]:
    """What the pod takes of its node, by Kubernetes' formula.

    Containers and sidecars run together and add up; an init container runs with only the
    sidecars that were started before it, so of those sums the largest counts.
    """
    spec, status = pod["spec"], pod.get("status") or {}
    resized = {
        each["name"]: each
        for part in ("containerStatuses", "initContainerStatuses")
        for each in status.get(part) or ()
        if each.get("resources") or each.get("allocatedResources")
    }
    refused = bool(resized) and _is_resize_infeasible(status)

    def requests(container: Obj) -> dict[str, int]:
        return _requests(container, resized.get(container.get("name", "")), refused)

    total: dict[str, int] = {}
    for container in spec["containers"]:
        _add(total, requests(container))
    sidecars: dict[str, int] = {}
    peaks: list[dict[str, int]] = []
    for container in spec.get("initContainers") or ():
        asked = requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            peaks.append(dict(sidecars))
        else:
            peak = dict(sidecars)
            _add(peak, asked)
            peaks.append(peak)
    _add(total, sidecars)
    for peak in peaks:
        _raise(total, peak)
    if spec.get("resources"):  # pod-level requests win
        total |= _requests(spec, status if status.get("resources") else None, refused)
    _add(total, amounts(spec.get("overhead")))
    total["pods"] = 1
    return {name: min(amount, MOST) for name, amount in total.items()}


def _requests(asking: Obj, status: Obj | None, refused: bool) -> dict[str, int]:
    """Of a container or a pod.

    While it is resized in place: the largest of what was asked for, what the kubelet has allotted,
    and what the processes really have. Until a shrink is done, nobody else can have the difference.
    `refused`: the kubelet will never do what was asked for.
    """
    asked = amounts((asking.get("resources") or {}).get("requests"))
    if status is None:
        return asked
    most = {} if refused else asked
    _raise(most, amounts((status.get("resources") or {}).get("requests")))
    _raise(most, amounts(status.get("allocatedResources")))
    return most


def _is_resize_infeasible(status: Obj) -> bool:
    return status.get("resize") == "Infeasible" or any(
        (each.get("type"), each.get("status"), each.get("reason"))
        == ("PodResizePending", "True", "Infeasible")
        for each in status.get("conditions") or ()
    )


def _raise(most: dict[str, int], others: dict[str, int]) -> None:
    for name, amount in others.items():
        most[name] = max(most.get(name, 0), amount)


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
