"""Suggestions of the editor: what the API server's own OpenAPI says about a place in a manifest."""

import json
from urllib.parse import urlencode

import pytest

from gpupool.console.schemas import Documents, Schemas, fields_at, kinds_in, schema_of, values_at
from kubeclient.objects import Obj
from tests.console.conftest import Office

pytestmark = pytest.mark.timeout(600)


def asked(office: Office, what: str, api_version: str, kind: str, *path: str) -> list[Obj]:
    query = {"what": what, "apiVersion": api_version, "kind": kind, "path": "\n".join(path)}
    status, text = office.sees(f"suggestions?{urlencode(query)}")
    assert status == 200, text
    found: list[Obj] = json.loads(text)["named"]
    return found


def names(found: list[Obj]) -> list[str]:
    return [each["name"] for each in found]


CONTAINERS = ("spec", "template", "spec", "containers")


def test_fields_of_the_servers_own_schema_are_suggested(office: Office) -> None:
    top = asked(office, "fields", "apps/v1", "Deployment")
    assert {"apiVersion", "kind", "metadata", "spec"} <= set(names(top))
    assert names(top)[-1] == "status"
    container = asked(office, "fields", "apps/v1", "Deployment", *CONTAINERS)
    assert names(container)[0] == "name", "what is needed comes first"
    by_name = {each["name"]: each for each in container}
    assert by_name["image"]["type"] == "string"
    assert by_name["ports"]["type"] == "array"
    assert by_name["resources"]["type"] == "object"
    assert 0 < len(by_name["image"]["help"]) <= 160
    assert "postStart" in names(
        asked(office, "fields", "apps/v1", "Deployment", *CONTAINERS, "lifecycle")
    )


def test_values_of_fields_are_suggested(office: Office) -> None:
    policy = (*CONTAINERS, "imagePullPolicy")
    found = asked(office, "values", "apps/v1", "Deployment", *policy)
    assert {"Always", "IfNotPresent", "Never"} <= set(names(found))
    found = asked(office, "values", "apps/v1", "Deployment", *CONTAINERS, "tty")
    assert names(found) == ["true", "false"]
    assert asked(office, "values", "apps/v1", "Deployment", *CONTAINERS, "image") == []
    kinds = names(asked(office, "values", "apps/v1", "", "kind"))
    assert {"Deployment", "StatefulSet", "DaemonSet"} <= set(kinds)
    assert not [kind for kind in kinds if kind.endswith("List")]
    versions = names(asked(office, "values", "", "", "apiVersion"))
    assert {"v1", "apps/v1", "batch/v1", "gpupool.io/v1alpha1"} <= set(versions)


def test_kinds_of_our_own_are_suggested_too(office: Office) -> None:
    spec = names(asked(office, "fields", "gpupool.io/v1alpha1", "NodePool", "spec"))
    assert {"instanceType", "count", "machines"} <= set(spec)
    system = names(asked(office, "values", "gpupool.io/v1alpha1", "NodePool", "spec", "os"))
    assert set(system) == {"CentOS 7.x", "Alibaba Cloud Linux 2.x"}


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("", "", ()),
        ("nope/v9", "Nope", ("spec",)),
        ("../../api/v1/secrets", "Secret", ()),
        ("v1?x=", "Pod", ()),
        ("apps/v1/../../..", "Deployment", ()),
        ("apps/v1", "Deployment", ("nope", "nope")),
        ("apps/v1", "Deployment", ("spec",) * 500),
        ("apps/v1", "Deployment", ("<script>",)),
        ("a" * 2000, "b" * 2000, ()),
    ],
)
def test_places_that_are_not_there_have_no_suggestions(
    office: Office, api_version: str, kind: str, path: tuple[str, ...]
) -> None:
    found = names(asked(office, "fields", api_version, kind, *path))
    assert found == ([] if path else ["apiVersion", "kind", "metadata", "spec"])
    assert asked(office, "values", api_version, kind, *path) == []


def test_whoever_is_not_signed_in_gets_none(office: Office) -> None:
    stranger = Office(office.cluster, office.port, "")
    assert stranger.sees("suggestions?apiVersion=v1&kind=Pod")[0] in (303, 401)


def test_references_that_lead_in_a_circle_end() -> None:
    schemas: Obj = {
        "A": {"$ref": "#/components/schemas/B"},
        "B": {"allOf": [{"$ref": "#/components/schemas/A"}]},
        "L": {"type": "array", "items": {"$ref": "#/components/schemas/L"}},
        "M": {"additionalProperties": {"$ref": "#/components/schemas/T"}},
        "T": {"properties": {"x": {"allOf": [{"$ref": "#/components/schemas/T"}]}}},
    }
    for name in ("A", "B", "L"):
        assert fields_at(schemas, schemas[name], ()) == []
        assert values_at(schemas, schemas[name], ("x",)) == []
    [field] = fields_at(schemas, schemas["M"], ("any", "x", "x"))
    assert (field.name, field.type) == ("x", "object")
    assert schema_of({}, "v1", "Pod") == {}
    assert kinds_in({}, "v1") == []


class Server:
    """Its index, and a document with one kind, in which a field is called "description"."""

    def __init__(self, name: str = "/openapi/v3/api/v1?hash=A") -> None:
        self.name = name
        self.read: list[str] = []

    async def page(self, path: str) -> Obj:
        self.read.append(path)
        if path == "/openapi/v3":
            return {"paths": {"api/v1": {"serverRelativeURL": self.name}, "version": {}}}
        kind = {"group": "", "version": "v1", "kind": "Pod"}
        properties = {"description": {"type": "string", "default": 3, "description": "Ah. " * 99}}
        properties |= {"default": {"type": "string"}}
        schema = {"properties": properties, "x-kubernetes-group-version-kind": [kind]}
        return {"paths": {"much": {}}, "components": {"schemas": {"P": schema}}}


def visitor(server: Server, now: list[float], documents: Documents) -> Schemas:
    return Schemas(server, lambda: now[0], documents)  # type: ignore[arg-type]  # all it uses


async def test_a_document_is_read_once_for_all_visitors_and_the_index_by_each() -> None:
    now, server, documents = [0.0], Server(), Documents()
    for _ in range(2):
        schemas = visitor(server, now, documents)
        for _ in range(2):
            [other, field] = await schemas.fields("v1", "Pod", ())
            assert other.name == "default"
            assert (field.name, field.help) == ("description", "Ah")
    assert server.read == ["/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3"]
    now[0] += 301
    server.name = "/openapi/v3/api/v1?hash=B"  # a CRD has changed
    await schemas.fields("v1", "Pod", ())
    assert server.read[3:] == ["/openapi/v3", "/openapi/v3/api/v1"]


async def test_a_document_without_a_hash_is_not_shared() -> None:
    now, documents = [0.0], Documents()
    first, second = Server("/openapi/v3/api/v1"), Server("/openapi/v3/api/v1")
    await visitor(first, now, documents).fields("v1", "Pod", ())
    await visitor(second, now, documents).fields("v1", "Pod", ())
    assert second.read == ["/openapi/v3", "/openapi/v3/api/v1"]


async def test_few_documents_are_kept() -> None:
    now, documents = [0.0], Documents()
    for number in range(40):
        server = Server(f"/openapi/v3/api/v1?hash={number}")
        await visitor(server, now, documents).fields("v1", "Pod", ())
    assert len(documents._kept) == 12
