"""Texts are those of a real kube-apiserver 1.35.8 for the same objects."""

import copy
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kinds, builtin_kinds
from localkube.apiserver.schema.check import FieldValidation, conform
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.schema.strictness import AsWritten
from localkube.apiserver.status import ApiError

KINDS = Kinds(builtin_kinds())


def _conform(obj: Obj, validation: FieldValidation = "Warn") -> list[str]:
    kind = KINDS.by_kind(*_gvk(obj))
    assert kind is not None
    return conform(obj, kind, schema_of(kind.group, kind.version, kind.kind), validation)


def _gvk(obj: Obj) -> tuple[str, str, str]:
    group, _, version = obj["apiVersion"].rpartition("/")
    return group, version, obj["kind"]


def _refusal(obj: Obj, validation: FieldValidation = "Warn") -> str:
    with pytest.raises(ApiError) as refused:
        _conform(obj, validation)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    return str(refused.value)


def _pod(**spec: Any) -> Obj:
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, **spec},
    }


def _container(**fields: Any) -> Obj:
    return _pod(containers=[{"name": "c", "image": "i", **fields}])


def _config_map(**fields: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, **fields}


def test_a_clean_object_is_left_alone() -> None:
    pod = _container(resources={"limits": {"cpu": "100m", "nvidia.com/gpu": "1"}})
    before = copy.deepcopy(pod)
    assert _conform(pod, "Strict") == []
    assert pod == before


PROBE_PORT = "HTTPGetAction.spec.containers.livenessProbe.httpGet.port"
MEDIUM = "EmptyDirVolumeSource.spec.volumes.emptyDir.medium"
LIMITS = "ResourceRequirements.spec.containers.resources.limits"


@pytest.mark.parametrize(
    ("obj", "found", "field", "wanted"),
    [
        (_container(image=5), "number", "Container.spec.containers.image", "string"),
        (_container(args=[5]), "number", "Container.spec.containers.args", "string"),
        (_pod(containers={}), "object", "PodSpec.spec.containers", "[]v1.Container"),
        (_pod(restartPolicy=5), "number", "PodSpec.spec.restartPolicy", "string"),
        (_pod(priority=1.5), "number 1.5", "PodSpec.spec.priority", "int32"),
        (_pod(priority=2**40), "number 1099511627776", "PodSpec.spec.priority", "int32"),
        (_pod(priority="1"), "string", "PodSpec.spec.priority", "int32"),
        (_pod(hostNetwork=1), "number", "PodSpec.spec.hostNetwork", "bool"),
        (_config_map(data="str"), "string", "ConfigMap.data", "map[string]string"),
        (_config_map(binaryData={"a": 1}), "number", "ConfigMap.binaryData", "[]uint8"),
        (_pod(volumes=[{"emptyDir": {"medium": 5}}]), "number", MEDIUM, "string"),
        (_container(livenessProbe={"httpGet": {"port": True}}), "bool", PROBE_PORT, "int32"),
        (_container(resources={"limits": "x"}), "string", LIMITS, "map[string]resource.Quantity"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_gos_words(
    obj: Obj, found: str, field: str, wanted: str
) -> None:
    kind = obj["kind"]
    assert _refusal(obj) == (
        f'{kind} in version "v1" cannot be handled as a {kind}: '
        f"json: cannot unmarshal {found} into Go struct field {field} of type {wanted}"
    )


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (
            "abc",
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("1KK", "unable to parse quantity's suffix"),
        (
            True,
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_a_bad_quantity_is_refused(limit: Any, why: str) -> None:
    pod = _container(resources={"limits": {"cpu": limit}})
    assert _refusal(pod) == f'Pod in version "v1" cannot be handled as a Pod: {why}'


def test_a_bad_quantity_is_told_before_an_earlier_wrong_type() -> None:
    pod = _container(image=5, resources={"limits": {"cpu": "1KK"}})
    assert _refusal(pod).endswith(": unable to parse quantity's suffix")


@pytest.mark.parametrize(
    ("text", "place"),
    [("!!", 0), ("YQ=", 3), ("YQ", 0), ("Y=", 1), ("YWJj=", 4), ("YQ=a", 2), ("YQ==x", 4)],
)
def test_bad_base64_is_refused_where_it_ends(text: str, place: int) -> None:
    refusal = _refusal(_config_map(binaryData={"a": text}))
    assert refusal.endswith(f"illegal base64 data at input byte {place}")


def test_numbers_in_quantities_become_text() -> None:
    pod = _container(resources={"limits": {"nvidia.com/gpu": 1, "cpu": 0.5}})
    assert _conform(pod, "Strict") == []
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": "1", "cpu": "0.5"}


def test_null_means_absent() -> None:
    pod = _container(args=None)
    pod["metadata"]["creationTimestamp"] = None
    pod["status"] = None
    assert _conform(pod, "Strict") == []
    assert pod == _container()


def test_null_in_a_list_or_map_means_the_zero_value() -> None:
    pod = _container(args=[None, "a"], resources={"limits": {"cpu": None}})
    pod["metadata"]["labels"] = {"a": None}
    _conform(pod)
    container = pod["spec"]["containers"][0]
    assert container["args"] == ["", "a"]
    assert container["resources"] == {"limits": {"cpu": "0"}}
    assert pod["metadata"]["labels"] == {"a": ""}


def test_times_become_utc() -> None:
    config_map = _config_map()
    config_map["metadata"]["creationTimestamp"] = "2020-01-02T01:00:00.5+02:00"
    _conform(config_map)
    assert config_map["metadata"]["creationTimestamp"] == "2020-01-01T23:00:00Z"


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"replcas": 1, "template": {"spec": {"containers": [{"name": "c", "comand": []}]}}},
}


def test_strict_names_every_unknown_field() -> None:
    assert _refusal(copy.deepcopy(DEPLOYMENT), "Strict") == (
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
        'unknown field "spec.replcas", '
        'unknown field "spec.template.spec.containers[0].comand"'
    )


def test_warn_drops_unknown_fields_and_says_so() -> None:
    deployment = copy.deepcopy(DEPLOYMENT)
    assert _conform(deployment, "Warn") == [
        'unknown field "spec.replcas"',
        'unknown field "spec.template.spec.containers[0].comand"',
    ]
    assert deployment["spec"] == {"template": {"spec": {"containers": [{"name": "c"}]}}}


def test_ignore_drops_unknown_fields_in_silence() -> None:
    config_map = _config_map(foo=1)
    assert _conform(config_map, "Ignore") == []
    assert config_map == _config_map()


def test_duplicates_are_told_with_the_unknown_fields() -> None:
    kind = KINDS.find("", "v1", "configmaps")
    assert kind is not None
    with pytest.raises(ApiError, match=r'error: duplicate field "data", unknown field "foo"$'):
        conform(
            _config_map(foo=1),
            kind,
            schema_of("", "v1", "ConfigMap"),
            "Strict",
            AsWritten(['duplicate field "data"']),
        )


def test_a_crds_own_schema_is_checked_to_the_bottom() -> None:
    leaf = {"type": "string", "patern": "x"}
    schema = {"type": "object", "properties": {"spec": {"properties": {"size": leaf}}}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    crd: Obj = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "x"},
        "spec": {"versions": [version]},
    }
    where = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.size.patern"
    assert _conform(crd) == [f'unknown field "{where}"']
