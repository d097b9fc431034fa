from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind, Kinds, builtin_kinds
from localkube.apiserver.openapi import OpenApi
from localkube.apiserver.request import Answer, Request

FOO = Kind(
    group="ex.io",
    version="v1",
    kind="Foo",
    plural="foos",
    singular="foo",
    namespaced=True,
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    custom=True,
)
PORT = {"x-kubernetes-int-or-string": True}
SCHEMA: Obj = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"port": PORT}}},
}
CORE = "api/v1"
FOOS = "apis/ex.io/v1"


class Served:
    """An OpenApi with one CRD, whose schema a test may change."""

    def __init__(self) -> None:
        self.kinds = Kinds(builtin_kinds())
        self.schema = SCHEMA
        self.openapi = OpenApi(
            self.kinds, lambda kind: orjson.dumps(self.schema) if kind.custom else b""
        )

    def get(self, url: str, **headers: str) -> Answer | None:
        path, _, query = url.partition("?")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.openapi.answer(path, Request("GET", path, query, headers=sent))

    def urls(self) -> dict[str, str]:
        found = _json(self.get("/openapi/v3"))["paths"]
        return {name: row["serverRelativeURL"] for name, row in found.items()}


def _json(answer: Answer | None) -> Any:
    assert answer is not None
    assert answer.status == 200
    assert isinstance(answer.body, bytes)
    return orjson.loads(answer.body)


@pytest.fixture
def served() -> Served:
    return Served()


def test_the_index_names_every_group_version(served: Served) -> None:
    names = set(served.urls())
    assert {CORE, "apis/apps/v1", "apis/metrics.k8s.io/v1beta1"} <= names
    assert FOOS not in names


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def test_every_document_holds_all_that_it_refers_to(served: Served) -> None:
    served.kinds.add(FOO)
    for url in served.urls().values():
        document = _json(served.get(url))
        known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(_references(document)) <= known, url


def test_kubectl_finds_a_kind_and_its_field_validation(served: Served) -> None:
    paths = _json(served.get(served.urls()[CORE]))["paths"]
    pod = paths["/api/v1/namespaces/{namespace}/pods/{name}"]
    gvk = {"group": "", "version": "v1", "kind": "Pod"}
    assert pod["get"]["x-kubernetes-group-version-kind"] == gvk
    assert pod["patch"]["x-kubernetes-group-version-kind"] == gvk
    assert "fieldValidation" in [one["name"] for one in pod["patch"]["parameters"]]
    assert paths["/api/v1/namespaces/{namespace}/pods"]["get"]["x-kubernetes-action"] == "list"
    assert "/api/v1/pods" in paths
    assert "/api/v1/namespaces/{namespace}/pods/{name}/eviction" in paths


def test_only_built_in_kinds_take_strategic_patches(served: Served) -> None:
    served.kinds.add(FOO)
    strategic = "application/strategic-merge-patch+json"

    def patches(document: str) -> list[set[str]]:
        paths = _json(served.get(served.urls()[document]))["paths"].values()
        return [set(path["patch"]["requestBody"]["content"]) for path in paths if "patch" in path]

    assert all(strategic in types for types in patches("apis/apps/v1"))
    assert patches(FOOS)
    assert not any(strategic in types for types in patches(FOOS))


def test_schemas_have_descriptions_and_types(served: Served) -> None:
    schemas = _json(served.get(served.urls()[CORE]))["components"]["schemas"]
    container = schemas["io.k8s.api.core.v1.Container"]
    assert container["description"].startswith("A single application container")
    assert container["properties"]["image"]["type"] == "string"
    assert container["properties"]["ports"]["x-kubernetes-patch-merge-key"] == "containerPort"
    reference = "#/components/schemas/io.k8s.api.core.v1.ResourceRequirements"
    assert container["properties"]["resources"]["allOf"] == [{"$ref": reference}]
    assert "oneOf" in schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]


def test_fields_tell_which_values_they_take(served: Served) -> None:
    schemas = _json(served.get(served.urls()[CORE]))["components"]["schemas"]
    policy = schemas["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"]
    assert policy["enum"] == ["Always", "IfNotPresent", "Never"]
    assert "Possible enum values" in policy["description"]
    families = schemas["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ipFamilies"]
    assert families["items"]["enum"] == ["", "IPv4", "IPv6"]


def test_a_custom_kind_is_there_at_once_and_gone_at_once(served: Served) -> None:
    served.kinds.add(FOO)
    schemas = _json(served.get(served.urls()[FOOS]))["components"]["schemas"]
    foo = schemas["io.ex.v1.Foo"]
    assert foo["x-kubernetes-group-version-kind"] == [
        {"group": "ex.io", "version": "v1", "kind": "Foo"}
    ]
    assert set(foo["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    port = foo["properties"]["spec"]["properties"]["port"]
    assert port["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert "io.ex.v1.FooList" in schemas
    served.kinds.remove(FOO)
    assert FOOS not in served.urls()
    assert served.get(f"/openapi/v3/{FOOS}") is None


def test_an_object_inside_of_an_object_has_the_fields_of_all_objects(served: Served) -> None:
    inner = {"type": "string"}
    template = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"a": inner},
        "required": ["kind", "a"],
    }
    templates = {"type": "array", "items": template}
    served.schema = {"type": "object", "properties": {"spec": templates}}
    served.kinds.add(FOO)
    schemas = _json(served.get(served.urls()[FOOS]))["components"]["schemas"]
    foo = schemas["io.ex.v1.Foo"]["properties"]
    found = foo["spec"]["items"]
    assert found["required"] == ["kind", "a", "apiVersion"]
    own = {name: foo[name] for name in ("apiVersion", "kind", "metadata")}
    assert found["properties"] == {"a": inner, **own}


def test_the_hash_changes_with_the_schema_alone(served: Served) -> None:
    served.kinds.add(FOO)
    before = served.urls()
    served.schema = {"type": "object", "properties": {"spec": {"type": "string"}}}
    served.kinds.remove(FOO)
    served.kinds.add(FOO)
    after = served.urls()
    assert before.pop(FOOS) != after.pop(FOOS)
    assert before == after
    schemas = _json(served.get(served.urls()[FOOS]))["components"]["schemas"]
    assert schemas["io.ex.v1.Foo"]["properties"]["spec"] == {"type": "string"}


def test_a_document_with_the_right_hash_may_be_kept_for_good(served: Served) -> None:
    answer = served.get(served.urls()[CORE])
    assert answer is not None
    headers = dict(answer.headers)
    assert headers["Cache-Control"] == "public, immutable"
    assert "Expires" in headers
    plain = served.get(f"/openapi/v3/{CORE}?hash=OLD")
    assert plain is not None
    assert "Cache-Control" not in dict(plain.headers)


def test_a_known_document_is_not_sent_again(served: Served) -> None:
    first = served.get(f"/openapi/v3/{CORE}")
    assert first is not None
    again = served.get(f"/openapi/v3/{CORE}", if_none_match=dict(first.headers)["ETag"])
    assert again is not None
    assert (again.status, again.body) == (304, b"")


def test_version_2_is_json_or_a_bare_protobuf(served: Served) -> None:
    served.kinds.add(FOO)
    document = _json(served.get("/openapi/v2", accept="application/json"))
    known = {f"#/definitions/{name}" for name in document["definitions"]}
    assert "#/definitions/io.ex.v1.Foo" in known
    assert set(_references(document)) <= known
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    bare = served.get("/openapi/v2", accept=protobuf)
    assert bare is not None
    assert (bare.status, bare.body) == (200, b"\n\x032.0")
    assert bare.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    refused = served.get("/openapi/v2", accept="text/csv")
    assert refused is not None
    assert refused.status == 406


def test_other_paths_are_unknown(served: Served) -> None:
    assert served.get("/openapi/v3/apis/nope/v1") is None
    assert served.get("/openapi/v1") is None
