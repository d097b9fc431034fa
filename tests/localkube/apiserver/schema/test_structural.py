"""crd_values.json: what a real kube-apiserver 1.35.8 made of objects of one CRD."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind
from localkube.apiserver.schema.check import FieldValidation, conform
from localkube.apiserver.schema.node import Type
from localkube.apiserver.schema.structural import CrdVersion, compile_crd_version
from localkube.apiserver.status import ApiError

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("crd_values.json").read_text())
VERSION = compile_crd_version(RECORDED["crd"], "v1")
BAZ = Kind(
    group="ex.io",
    version="v1",
    kind="Baz",
    plural="bazs",
    singular="baz",
    namespaced=True,
    verbs=("create",),
    custom=True,
)


def _baz(**spec: Any) -> Obj:
    return {"apiVersion": "ex.io/v1", "kind": "Baz", "metadata": {"name": "f"}, "spec": spec}


def _conform(obj: Obj, validation: FieldValidation = "Warn") -> list[str]:
    return conform(obj, BAZ, VERSION.schema, validation)


@pytest.mark.parametrize(
    "row", RECORDED["rows"], ids=lambda row: f"{row['field']}={json.dumps(row['value'])}"
)
def test_an_object_is_judged_as_kubernetes_judges_it(row: Obj) -> None:
    obj = _baz(**{row["field"]: row["value"]})
    warnings = _conform(obj)
    VERSION.apply_defaults(obj)
    errors = VERSION.validate(obj)
    found = [{"reason": e.reason, "message": e.message, "field": e.field} for e in errors]
    assert sorted(found, key=str) == sorted(row["causes"], key=str)
    assert warnings == row["warnings"]
    if not errors:
        assert obj["spec"] == row["stored"]


@pytest.mark.parametrize("value", [1e40, -1e40, 2.0**53])
def test_a_number_that_is_too_large_is_no_integer(value: float) -> None:
    obj = _baz(inti=value)
    assert _conform(obj) == []
    assert obj["spec"]["inti"] is value
    (error,) = VERSION.validate(obj)
    assert error.message.endswith('spec.inti in body must be of type integer: "number"')


def test_what_the_root_requires_is_named() -> None:
    obj = _baz()
    del obj["spec"]
    assert [f"{e.field}: {e.message}" for e in VERSION.validate(obj)] == ["spec: Required value"]


def test_unknown_fields_are_named_in_order_of_name_after_those_of_metadata() -> None:
    obj = _baz(zoo=1, bar={"a": 1}, lst=[{"x": 1}]) | {"aaa": 1}
    obj["metadata"]["foo"] = 1
    with pytest.raises(ApiError) as refused:
        _conform(obj, "Strict")
    assert str(refused.value) == (
        'Baz in version "v1" cannot be handled as a Baz: strict decoding error: '
        'unknown field "metadata.foo", unknown field "aaa", unknown field "spec.bar", '
        'unknown field "spec.lst[0].x", unknown field "spec.zoo"'
    )


def test_metadata_is_typed() -> None:
    obj = _baz()
    obj["metadata"]["labels"] = {"a": 1}
    with pytest.raises(ApiError) as refused:
        _conform(obj)
    assert str(refused.value).endswith(
        ": json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    )
    obj["metadata"] = "x"
    with pytest.raises(ApiError) as refused:
        _conform(obj)
    assert str(refused.value).endswith(
        ": json: cannot unmarshal string into Go value of type v1.ObjectMeta"
    )


def _version(**fields: Obj) -> CrdVersion:
    """Of a CRD whose spec has these fields."""
    spec = {"type": "object", "properties": fields}
    schema = {"type": "object", "properties": {"spec": spec}}
    document = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Baz", "plural": "bazs"}
    return compile_crd_version({"spec": {"names": names, "versions": [document]}}, "v1")


def test_an_embedded_object_has_metadata_and_must_say_its_kind() -> None:
    template: Obj = {"type": "object", "properties": {"size": {"type": "integer"}}}
    template["x-kubernetes-embedded-resource"] = True
    version = _version(template=template)
    obj = _baz(template={"metadata": {"name": "x", "foo": 1}, "size": 1, "zork": 2})
    assert conform(obj, BAZ, version.schema, "Warn") == [
        'unknown field "spec.template.metadata.foo"',
        'unknown field "spec.template.zork"',
    ]
    assert [e.field for e in version.validate(obj)] == [
        "spec.template.apiVersion",
        "spec.template.kind",
    ]


def test_defaults_are_not_shared_between_objects() -> None:
    version = _version(list={"type": "array", "items": {"type": "string"}, "default": ["a"]})
    first, second = _baz(), _baz()
    version.apply_defaults(first)
    first["spec"]["list"].append("b")
    version.apply_defaults(second)
    assert second["spec"]["list"] == ["a"]


def test_lists_keep_their_keys_for_server_side_apply() -> None:
    key = {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}
    ports: Obj = {"type": "array", "items": {"type": "object", "properties": key}}
    ports["x-kubernetes-list-type"] = "map"
    ports["x-kubernetes-list-map-keys"] = ["port", "protocol"]
    schema = _version(ports=ports).schema
    found = schema.fields["spec"].fields["ports"]
    assert (found.list_type, found.list_keys) == ("map", ("port", "protocol"))
    assert found.key_defaults == {"protocol": "TCP"}


def test_formats_do_not_change_a_text() -> None:
    schema = _version(when={"type": "string", "format": "date-time"}).schema
    assert schema.fields["spec"].fields["when"].type is Type.STRING


def test_a_version_without_a_schema_keeps_everything() -> None:
    names = {"kind": "Baz", "plural": "bazs"}
    crd = {"spec": {"names": names, "versions": [{"name": "v1"}]}}
    obj = _baz(any={"thing": 1})
    assert conform(obj, BAZ, compile_crd_version(crd, "v1").schema, "Strict") == []
    assert obj == _baz(any={"thing": 1})
