"""The messages between kube-scheduler and its extenders, in both directions.

Up to Kubernetes 1.16 the keys were `pod`, `nodenames` and so on, since then `Pod`, `NodeNames`. Go
ignores case when it reads, so any case is read here. The newer form is written: both versions
understand it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import orjson

from kubeclient.objects import Obj

MAX_SCORE = 10


class BadMessage(ValueError):
    """Not what kube-scheduler sends."""


class _Question(msgspec.Struct):
    """As kube-scheduler has written it since 1.17."""

    Pod: dict[str, Any]
    NodeNames: tuple[str, ...]  # hundreds; this also checks their type at once
    Nodes: None = None


_question = msgspec.json.Decoder(_Question)


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """Arguments of filter and prioritize. `nodes`: objects, if kube-scheduler sends those."""

    pod: Obj
    names: tuple[str, ...]
    nodes: tuple[Obj, ...] | None


@dataclass(frozen=True, slots=True)
class BindingArgs:
    name: str
    namespace: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Victims:
    uids: tuple[str, ...]
    broken_budgets: int = 0


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    pod: Obj
    victims: Mapping[str, Victims]  # by node


def extender_args(body: bytes) -> ExtenderArgs:
    """Raises BadMessage."""
    try:
        asked = _question.decode(body)
    except msgspec.DecodeError:  # of an older version, with node objects, or no question
        return _older_args(_loaded(body))
    return ExtenderArgs(_object(asked.Pod, "Pod"), asked.NodeNames, None)


def _older_args(message: object) -> ExtenderArgs:
    fields = _fields(message)
    pod = _object(fields.get("pod"), "Pod")
    names, nodes = fields.get("nodenames"), fields.get("nodes")
    if names is not None:
        listed = _list(names, "NodeNames")
        # Thousands of them, and nearly always texts: to make texts of all takes longer than to ask.
        texts = listed if {*map(type, listed)} <= {str} else map(str, listed)
        return ExtenderArgs(pod, tuple(cast("Iterable[str]", texts)), None)
    items = _list(_fields(nodes or {}).get("items"), "Nodes.items")
    objects = tuple(_object(item, "Nodes.items") for item in items)
    return ExtenderArgs(pod, tuple(node["metadata"]["name"] for node in objects), objects)


def binding_args(body: bytes) -> BindingArgs:
    """Raises BadMessage."""
    fields = _fields(_loaded(body))
    found = [fields.get(key) for key in ("podname", "podnamespace", "poduid", "node")]
    if not all(isinstance(each, str) and each for each in found):
        raise BadMessage("wanted PodName, PodNamespace, PodUID and Node")
    return BindingArgs(*map(str, found))


def preemption_args(body: bytes) -> PreemptionArgs:
    """Raises BadMessage."""
    fields = _fields(_loaded(body))
    victims: dict[str, Victims] = {}
    for key in ("nodenametovictims", "nodenametometavictims"):
        for node, listed in (fields.get(key) or {}).items():
            of_node = _fields(listed)
            pods = [_fields(pod) for pod in _list(of_node.get("pods"), "Pods")]
            uids = tuple(_uid(pod) for pod in pods)
            victims[node] = Victims(uids, int(of_node.get("numpdbviolations") or 0))
    return PreemptionArgs(_object(fields.get("pod"), "Pod"), victims)


def filter_result(
    args: ExtenderArgs, fitting: Iterable[str], failed: Obj, unresolvable: Obj
) -> Obj:
    """Reasons by node. `failed`: preemption might help; `unresolvable`: it cannot."""
    names = list(fitting)
    result: Obj = {
        "Nodes": None,
        "NodeNames": names,
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": unresolvable,
        "Error": "",
    }
    if args.nodes is not None:
        chosen = set(names)
        items = [node for node in args.nodes if node["metadata"]["name"] in chosen]
        result |= {"Nodes": {"items": items}, "NodeNames": None}
    return result


def filter_error(error: str) -> Obj:
    return {"Nodes": None, "NodeNames": None, "Error": error}


def priorities(names: Iterable[str], scores: Iterable[int]) -> list[Obj]:
    return [{"Host": name, "Score": score} for name, score in zip(names, scores, strict=True)]


def binding_result(error: str) -> Obj:
    return {"Error": error}


def preemption_result(victims: Mapping[str, Victims]) -> Obj:
    return {
        "NodeNameToMetaVictims": {
            node: {
                "Pods": [{"UID": uid} for uid in found.uids],
                "NumPDBViolations": found.broken_budgets,
            }
            for node, found in victims.items()
        }
    }


def _loaded(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadMessage(f"wanted JSON: {error}") from error


def _fields(message: object) -> Obj:
    if not isinstance(message, dict):
        raise BadMessage("wanted a JSON object")
    return {str(key).lower(): value for key, value in message.items()}


def _object(value: object, what: str) -> Obj:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(metadata, dict) or "name" not in metadata:
        raise BadMessage(f"wanted an object with metadata.name as {what}")
    return value


def _list(value: object, what: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadMessage(f"wanted a list as {what}")
    return value


def _uid(victim: Obj) -> str:
    """From a pod object, or from an object with only a uid."""
    metadata = victim.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else victim.get("uid")
    if not isinstance(uid, str) or not uid:
        raise BadMessage("wanted the uid of each victim")
    return uid
