"""Objects that fit their schema and that nobody expects: extremes, cycles, other centuries.

`mutation.py` breaks the form of a body; here the form stays right, so that most of it is taken, and
what is taken reaches the controllers.
"""

import copy
import random
from collections.abc import Sequence
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.schema.node import Schema, Type

NAMES = ("a", "b", "c")
NAMESPACES = ("wild-1", "wild-2")
NODES = ("node-a", "node-b", "gone")
_INT32, _INT64 = 2**31 - 1, 2**63 - 1
_INTEGERS = (0, 1, 1, 2, 2, 3, 5, -1, 100, 65535, _INT32, -_INT32 - 1)
_LONG_INTEGERS = (*_INTEGERS, 2**33, 2**53, _INT64, -_INT64 - 1)
_QUANTITIES = ("0", "1", "100m", "1Gi", "1E100", "-1", "1n", "9223372036854775807", "12e-3", "7E")
_INT_OR_STRING = (0, 1, 2, _INT32, "0%", "1%", "50%", "100%", "1000%", "2147483647%", "http", "x")
_TIMES = (
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "2000-02-29T12:00:00Z",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
)
_UIDS = ("", "x", "00000000-0000-0000-0000-000000000000", "../..", "*")
_LABELS: tuple[dict[str, str], ...] = (
    {},
    {"app": "x"},
    {"app": "y"},
    {"app": ""},
    {"app": "x", "a.b/c": "d_-.e"},
)
# What some controller reads; the values are any text, as Kubernetes allows.
_READ_ANNOTATIONS = (
    "controller.kubernetes.io/hash",
    "controller.kubernetes.io/pod-deletion-cost",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "batch.kubernetes.io/cronjob-scheduled-timestamp",
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/job-index-failure-count",
    "batch.kubernetes.io/job-index-ignored-failure-count",
    "batch.kubernetes.io/job-tracking",
    "kubectl.kubernetes.io/last-applied-configuration",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/provisioned-by",
    "service.kubernetes.io/headless",
    "storageclass.kubernetes.io/is-default-class",
    "endpoints.kubernetes.io/managed-by",
)
_READ_LABELS = (
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid",
    "controller-revision-hash",
    "endpointslice.kubernetes.io/managed-by",
    "kubernetes.io/hostname",
    "kubernetes.io/service-name",
    "pod-template-hash",
    "service.kubernetes.io/headless",
    "statefulset.kubernetes.io/pod-name",
)
_TEXTS = (
    "",
    "x",
    "a",
    "b",
    "-1",
    "0",
    "7",
    str(_INT64),
    str(10**30),
    "1e400",
    "true",
    "٣",
    "é" * 40,
)
_LABEL_TEXTS = ("", "a", "b", "x", "0", "7", str(_INT64), "1e9", "endpointslice-controller.k8s.io")
_FINALIZERS = ("orphan", "foregroundDeletion", "example.com/stay")
_CONDITIONS = (
    *("Ready", "Available", "Progressing", "Complete", "Failed", "FailureTarget", "Suspended"),
    *("SuccessCriteriaMet", "DisruptionTarget", "PodScheduled", "MemoryPressure", "ReplicaFailure"),
    *("DisruptionAllowed", "ScalingActive", "AbleToScale", "RollingUpdate"),
)
# By the name of the field: enough of them must be right for the object to be taken.
_BY_FIELD: dict[str, tuple[str, ...]] = {
    "phase": ("Pending", "Running", "Succeeded", "Failed", "Unknown", "Bound", "Released"),
    "status": ("True", "False", "Unknown"),
    "type": _CONDITIONS,
    "reason": ("Evicted", "NodeLost", "x", ""),
    "nodeName": NODES,
    "completedIndexes": ("0-300000000", "0", "1,3-5", "2147483646"),
    "failedIndexes": ("0-300000000", "0", "1,3-5"),
    "schedule": ("* * * * *", "0 0 29 2 *", "*/7 1-5 * 1 1"),
    "timeZone": ("Etc/UTC", "America/Santiago"),
    "concurrencyPolicy": ("Allow", "Forbid", "Replace"),
    "completionMode": ("Indexed", "NonIndexed"),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Equal"),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule"),
    "restartPolicy": ("Never", "OnFailure", "Always"),
    "updateStrategy": ("OnDelete", "RollingUpdate"),
    "podManagementPolicy": ("Parallel", "OrderedReady"),
    "podReplacementPolicy": ("Failed", "TerminatingOrFailed"),
    "unhealthyPodEvictionPolicy": ("IfHealthyBudget", "AlwaysAllow"),
    "currentRevision": ("a", "x", ""),
    "updateRevision": ("a", "x", ""),
    "podIP": ("10.0.0.7", "fd00::7"),
    "ip": ("10.0.0.7", "fd00::7"),
    "hostIP": ("10.0.0.1",),
    "sessionAffinity": ("None", "ClientIP"),
    "externalTrafficPolicy": ("Cluster", "Local"),
}
_BY_TYPE: dict[Type, tuple[Any, ...]] = {
    Type.INTEGER: _LONG_INTEGERS,
    Type.BOOLEAN: (True, False),
    Type.INT_OR_STRING: _INT_OR_STRING,
    Type.QUANTITY: _QUANTITIES,
    Type.TIME: _TIMES,
    Type.NUMBER: (0.0, 1.5, 1e300),
    Type.BYTES: ("", "AA=="),
}
_DEEPEST = 7


class Mutator:
    """Draws of one seed."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.known: list[Obj] = []  # references to objects that were made: kind, name, uid

    # -- values ---------------------------------------------------------------------------------

    def value(self, schema: Schema, name: str, depth: int = 0) -> Any:
        """Any value that the schema allows."""
        if schema.type is Type.OBJECT:
            return self._object(schema, depth)
        if schema.type is Type.MAP:
            return self._map(schema, name, depth)
        if schema.type is Type.LIST:
            count = 0 if depth > _DEEPEST else self.draw.choice((0, 1, 1, 2))
            assert schema.items is not None
            return [self.value(schema.items, name, depth + 1) for _ in range(count)]
        if schema.type is Type.STRING:
            return self.draw.choice(_BY_FIELD[name]) if name in _BY_FIELD else self.text(name)
        if schema.type is Type.INTEGER and schema.integer_format == "int32":
            return self.draw.choice(_INTEGERS)
        return self.draw.choice(_BY_TYPE.get(schema.type, ({},)))

    def text(self, name: str) -> str:
        if name.lower().endswith("uid") and self.known and self.draw.random() < 0.7:
            return str(self.draw.choice(self.known)["uid"])
        return self.draw.choice((*_TEXTS, *NAMES, *NAMES))

    def _object(self, schema: Schema, depth: int) -> Obj:
        wanted = 0.0 if depth > _DEEPEST else (0.8 if depth < 2 else 0.4)
        return {
            name: self.value(field, name, depth + 1)
            for name, field in schema.fields.items()
            # Kubernetes takes most objects without what its documents call required.
            if self.draw.random() < (0.9 if name in schema.required else wanted)
        }

    def _map(self, schema: Schema, name: str, depth: int) -> Obj:
        if name in ("labels", "matchLabels", "selector", "nodeSelector"):
            return dict(self.draw.choice(_LABELS))
        assert schema.items is not None
        keys = ("cpu", "memory", "a") if schema.items.type is Type.QUANTITY else NAMES
        chosen = self.draw.sample(keys, self.draw.choice((0, 1, 2)))
        return {key: self.value(schema.items, key, depth + 1) for key in chosen}

    # -- objects --------------------------------------------------------------------------------

    def changed(self, obj: Obj, schema: Schema, times: int = 2) -> Obj:
        """A copy with some fields of spec and data changed."""
        obj = copy.deepcopy(obj)
        for _ in range(self.draw.randint(0, times)):
            parts = [part for part in schema.fields if part not in _IDENTITY and part in obj]
            if parts:
                part = self.draw.choice(parts)
                self._change(obj, part, schema.fields[part], 0)
        return obj

    def _change(self, holder: Any, key: Any, schema: Schema, depth: int) -> None:
        """Goes down at random, and replaces, adds or removes what it comes to."""
        value, draw = holder[key], self.draw
        if isinstance(value, dict) and schema.type is Type.OBJECT and schema.fields:
            name = draw.choice(list(value) if value and draw.random() < 0.7 else [*schema.fields])
            field = schema.fields.get(name)
            if field is None:
                return
            if name not in value:
                value[name] = self.value(field, name, depth + 2)
            elif draw.random() < 0.05 and name not in schema.required:
                del value[name]
            else:
                self._change(value, name, field, depth + 1)
        elif isinstance(value, list) and value and schema.items is not None:
            match draw.randrange(6):
                case 0:
                    value.append(copy.deepcopy(draw.choice(value)))
                case 1:
                    value.pop()
                case _:
                    self._change(value, draw.randrange(len(value)), schema.items, depth + 1)
        else:
            holder[key] = self.value(schema, str(key), depth + 1)

    def metadata(self, obj: Obj, kind: str) -> None:
        """Owners, labels, annotations and finalizers, in place."""
        draw, metadata = self.draw, obj.setdefault("metadata", {})
        if draw.random() < 0.5:
            metadata["labels"] = dict(draw.choice(_LABELS)) | self._some(_READ_LABELS, _LABEL_TEXTS)
        if draw.random() < 0.4:
            texts = (*_TEXTS, *_TIMES, "[]", "{}", "null")
            metadata["annotations"] = self._some(_READ_ANNOTATIONS, texts)
        if draw.random() < 0.35:
            metadata["ownerReferences"] = self.owners(kind, metadata.get("name", "a"))
        if draw.random() < 0.1:
            metadata["finalizers"] = [draw.choice(_FINALIZERS)]

    def _some(self, keys: Sequence[str], values: Sequence[str]) -> dict[str, str]:
        return {key: self.draw.choice(values) for key in self.draw.sample(keys, 2)}

    def owners(self, kind: str, name: str) -> list[Obj]:
        """Living ones, invented ones, and the object itself: at most one is the controller."""
        found: list[Obj] = []
        for place in range(self.draw.choice((1, 1, 2, 3))):
            invented: Obj = {
                "apiVersion": "apps/v1",
                "kind": self.draw.choice((kind, "ReplicaSet", "StatefulSet", "Nothing")),
                "name": self.draw.choice((name, *NAMES)),
                "uid": self.draw.choice(_UIDS[1:]),
            }
            lives = self.known and self.draw.random() < 0.75
            owner = dict(self.draw.choice(self.known)) if lives else invented
            owner["controller"] = place == 0 and self.draw.random() < 0.7
            owner["blockOwnerDeletion"] = self.draw.random() < 0.5
            found.append(owner)
        return found


_IDENTITY = ("apiVersion", "kind", "metadata", "status")
