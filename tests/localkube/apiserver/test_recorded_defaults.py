"""Every object that was sent to a real kube-apiserver is stored the same way here."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from kubeclient.objects import Obj
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.defaults.convert import from_storage, to_storage
from localkube.apiserver.defaults.server_fields import set_fields_on_create
from localkube.apiserver.defaults.shape import shape_of
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import User
from tests.conformance.deliberate_differences import OBJECTS, STORED_AS_SENT

FIXTURES = Path(__file__).parents[2] / "conformance" / "fixtures" / "defaults.json"
RECORDED: dict[str, Any] = {
    name: case
    for name, case in orjson.loads(FIXTURES.read_bytes()).items()
    if OBJECTS.get(name) is not STORED_AS_SENT
}
# Filled in by the server before or after defaults: identity, bookkeeping.
_SERVER_METADATA = (
    *("uid", "namespace", "creationTimestamp", "resourceVersion", "generation"),
    *("managedFields", "finalizers"),
)
# Filled in by admission plugins, or allocated.
_ADMITTED = {
    "Pod": ("serviceAccountName", "priority", "preemptionPolicy", "tolerations"),
    "Service": ("clusterIP", "healthCheckNodePort"),
    "Node": ("taints",),
}
_RECORDER = User("admin", ("system:masters", "system:authenticated"), "admin")
_TOKEN_VOLUME = "kube-api-access-"


def without_nulls(value: Any) -> Any:
    """But for times, which are stored as null where Go does so."""
    if isinstance(value, dict):
        return {
            key: without_nulls(inner)
            for key, inner in value.items()
            if inner is not None or key.endswith(("Time", "Timestamp"))
        }
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def admit(sent: Obj, stored: Obj) -> None:
    """Does to `sent` what other parts of an API server than ours do."""
    sent["metadata"].pop("selfLink", None)
    if sent["kind"] != "Node":
        sent.pop("status", None)
    for name in _SERVER_METADATA:
        if name in stored["metadata"]:
            sent["metadata"][name] = stored["metadata"][name]
    for name in _ADMITTED.get(sent["kind"], ()):
        if name in stored["spec"]:
            sent.setdefault("spec", {})[name] = stored["spec"][name]
    if sent["kind"] == "Pod":
        admit_token_volume(sent["spec"], stored["spec"])
    if sent["kind"] == "Service":
        for port, other in pairs(sent["spec"], stored["spec"], "ports"):
            port |= {"nodePort": other["nodePort"]} if "nodePort" in other else {}


def admit_token_volume(sent: Obj, stored: Obj) -> None:
    volumes = [v for v in stored.get("volumes", ()) if v["name"].startswith(_TOKEN_VOLUME)]
    if volumes:
        sent["volumes"] = [*sent.get("volumes", ()), *volumes]
    for group in ("containers", "initContainers"):
        for one, other in pairs(sent, stored, group):
            mounts = [
                m for m in other.get("volumeMounts", ()) if m["name"].startswith(_TOKEN_VOLUME)
            ]
            if mounts:
                one["volumeMounts"] = [*one.get("volumeMounts", ()), *mounts]


def pairs(sent: Obj, stored: Obj, name: str) -> Iterable[tuple[Obj, Obj]]:
    return zip(sent.get(name, ()), stored.get(name, ()), strict=True)


def kind_of(obj: Obj) -> Kind:
    group, _, version = obj["apiVersion"].rpartition("/")
    shape = shape_of(obj["apiVersion"], obj["kind"])
    assert shape is not None
    return Kind(
        group=group,
        version=version,
        kind=obj["kind"],
        plural=obj["kind"].lower() + "s",
        singular=obj["kind"].lower(),
        namespaced=True,
        verbs=(),
        has_status="status" in shape.below,
    )


@pytest.mark.parametrize("name", RECORDED)
def test_a_sent_object_is_stored_as_the_real_server_stores_it(name: str) -> None:
    case = RECORDED[name]
    obj, stored = without_nulls(case["sent"]), without_nulls(case["stored"])
    kind = kind_of(obj)
    admit(obj, stored)
    apply_defaults(obj, kind)
    obj = to_storage(obj, kind)
    set_fields_on_create(obj, kind, _RECORDER)
    assert from_storage(obj, kind) == stored


@pytest.mark.parametrize("name", RECORDED)
def test_defaults_of_a_stored_object_change_nothing(name: str) -> None:
    stored = without_nulls(RECORDED[name]["stored"])
    again = orjson.loads(orjson.dumps(stored))
    apply_defaults(again, kind_of(stored))
    assert again == stored
