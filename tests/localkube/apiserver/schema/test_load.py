import pytest

from localkube.apiserver.kinds import Kind, builtin_kinds
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.schema.node import Schema, Type


def _field(schema: Schema, path: str) -> Schema:
    for name in path.split("."):
        schema = schema.items if schema.items is not None else schema
        schema = schema.fields[name]
    return schema


POD = schema_of("", "v1", "Pod")


@pytest.mark.parametrize(
    "kind", builtin_kinds(), ids=lambda kind: f"{kind.kind}.{kind.api_version}"
)
def test_every_kind_has_a_schema(kind: Kind) -> None:
    schema = schema_of(kind.group, kind.version, kind.kind)
    assert schema.type is Type.OBJECT
    assert {"apiVersion", "kind", "metadata"} <= schema.fields.keys()


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("spec.containers", Type.LIST),
        ("spec.nodeSelector", Type.MAP),
        ("spec.priority", Type.INTEGER),
        ("spec.hostNetwork", Type.BOOLEAN),
        ("spec.containers.ports.protocol", Type.STRING),
        ("spec.containers.livenessProbe.httpGet.port", Type.INT_OR_STRING),
        ("metadata.creationTimestamp", Type.TIME),
        ("metadata.managedFields.fieldsV1", Type.ANY),
    ],
)
def test_fields_have_their_types(path: str, wanted: Type) -> None:
    assert _field(POD, path).type is wanted


def test_quantities_and_bytes_are_known_as_such() -> None:
    limits = _field(POD, "spec.containers.resources.limits").items
    assert limits is not None
    assert limits.type is Type.QUANTITY
    data = _field(schema_of("", "v1", "Secret"), "data").items
    assert data is not None
    assert data.type is Type.BYTES


def test_an_associative_list_names_its_keys_and_their_defaults() -> None:
    ports = _field(POD, "spec.containers.ports")
    assert (ports.list_type, ports.list_keys) == ("map", ("containerPort", "protocol"))
    assert ports.key_defaults == {"containerPort": 0, "protocol": "TCP"}
    assert (ports.patch_strategy, ports.patch_merge_key) == (("merge",), "containerPort")


def test_a_list_without_a_type_is_atomic() -> None:
    assert _field(POD, "spec.containers.args").list_type == "atomic"


def test_a_reference_may_say_how_its_field_is_merged() -> None:
    strategy = _field(schema_of("apps", "v1", "Deployment"), "spec.strategy")
    assert strategy.patch_strategy == ("retainKeys",)
    assert "rollingUpdate" in strategy.fields
    assert _field(POD, "spec.volumes").patch_strategy == ("merge", "retainKeys")


def test_a_reference_may_make_an_atomic_definition_granular() -> None:
    claim = _field(schema_of("", "v1", "PersistentVolume"), "spec.claimRef")
    assert not claim.atomic_map
    event = schema_of("", "v1", "Event")
    assert event.fields["involvedObject"].atomic_map


def test_a_definition_may_contain_itself() -> None:
    crd = schema_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    props = _field(crd, "spec.versions.schema.openAPIV3Schema")
    assert props.fields["properties"].items is props


def test_what_is_not_served_has_no_schema() -> None:
    with pytest.raises(KeyError):
        schema_of("", "v1", "Nonsense")
