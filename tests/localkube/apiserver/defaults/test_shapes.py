"""Stored objects look as if Go had written them."""

from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.defaults.shape import normalise, shape_of, zero_value
from localkube.apiserver.kinds import Kind, builtin_kinds

FULL = Path(__file__).parents[1] / "validation" / "full_objects.json"
OBJECTS: dict[str, Obj] = orjson.loads(FULL.read_bytes())
KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}


def shaped(api_version: str, kind: str, obj: Obj) -> Obj:
    shape = shape_of(api_version, kind)
    assert shape is not None
    normalise(obj, shape)
    return obj


@pytest.mark.parametrize("value", [False, None, "", 0, [], {}])
def test_nothing_is_left_out(value: object) -> None:
    spec = {"hostNetwork": value, "subdomain": value, "containers": [{"name": "c"}]}
    made = shaped("v1", "Pod", {"spec": spec})
    assert made["spec"] == {"containers": [{"name": "c", "resources": {}}]}


def test_a_list_of_quantities_is_written_as_go_writes_each() -> None:
    policy = {"default": "1", "validValues": ["1000m", "2.0", 3, None]}
    devices = [{"name": "d", "capacity": {"memory": {"value": "4", "requestPolicy": policy}}}]
    shaped("resource.k8s.io/v1", "ResourceSlice", {"spec": {"devices": devices}})
    assert policy["validValues"] == ["1", "2", "3", "0"]


def test_a_pointer_to_nothing_stays() -> None:
    made = shaped("v1", "Pod", {"spec": {"priority": 0, "enableServiceLinks": False}})
    assert (made["spec"]["priority"], made["spec"]["enableServiceLinks"]) == (0, False)


def test_structures_are_written_even_if_nobody_sent_them() -> None:
    made = shaped("apps/v1", "Deployment", {})
    assert made["metadata"] == made["status"] == made["spec"]["strategy"] == {}
    assert made["spec"]["template"] == {"metadata": {}, "spec": {}}


def test_each_object_gets_structures_of_its_own() -> None:
    first, second = (shaped("apps/v1", "Deployment", {}) for _ in range(2))
    first["spec"]["strategy"]["type"] = "Recreate"
    assert second["spec"]["strategy"] == {}


def test_quantities_are_written_in_one_way() -> None:
    resources = {"limits": {"cpu": 1.5, "memory": "1024Mi", "nvidia.com/gpu": 1}}
    spec = {"containers": [{"name": "c", "resources": resources}]}
    made = shaped("v1", "Pod", {"spec": spec})["spec"]["containers"][0]
    limits = {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert made["resources"]["limits"] == limits


def test_unknown_fields_stay() -> None:
    assert shaped("v1", "ConfigMap", {"metadata": {}, "odd": []})["odd"] == []


def test_kinds_that_kubernetes_does_not_know_have_no_shape() -> None:
    assert shape_of("example.com/v1", "Thing") is None


def test_repeated_owners_count_once() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    other = owner | {"uid": "v", "controller": False}
    metadata = {"name": "c", "ownerReferences": [owner, other, owner]}
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    apply_defaults(obj, KINDS["v1", "ConfigMap"])
    assert obj["metadata"]["ownerReferences"] == [owner, other]


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: f"{kind.group}/{kind.kind}")
def test_an_object_that_says_nothing_can_be_completed(kind: Kind) -> None:
    obj: Obj = {"metadata": {}}
    apply_defaults(obj, kind)
    again = orjson.loads(orjson.dumps(obj))
    apply_defaults(again, kind)
    assert again == obj


@given(st.sampled_from(sorted(OBJECTS)), st.data())
@settings(max_examples=100, deadline=None)
def test_defaults_applied_twice_change_nothing(name: str, data: st.DataObject) -> None:
    obj: Obj = orjson.loads(orjson.dumps(OBJECTS[name]))
    for holder in (obj, obj.get("spec", {})):
        for key in data.draw(st.lists(st.sampled_from(sorted(holder) or ["x"]), max_size=3)):
            if key not in ("apiVersion", "kind", "metadata"):
                holder.pop(key, None)
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    apply_defaults(obj, kind)
    again = orjson.loads(orjson.dumps(obj))
    apply_defaults(again, kind)
    assert again == obj


def test_a_zero_value_is_complete() -> None:
    shape = shape_of("v1", "Service")
    assert shape is not None
    made = zero_value(shape)
    normalised = orjson.loads(orjson.dumps(made))
    normalise(normalised, shape)
    assert normalised == made
