"""Checks of the editor while somebody types: mistakes of YAML, and what does not fit the schema."""

import contextlib
import http.client
import json
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
import yaml

from gpupool.console.complaints import field_path
from gpupool.console.field_checks import wrong_fields
from gpupool.console.pages.checks import complaints
from gpupool.console.starters import STARTERS
from gpupool.console.words import ENGLISH, translator
from gpupool.contract.yaml_document import Document, read_document
from kubeclient.objects import Obj
from tests.console.conftest import Office

pytestmark = pytest.mark.timeout(600)

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.yaml"))
HEAD = "apiVersion: apps/v1\nkind: Deployment\n"


def checked(office: Office, text: str, **headers: str) -> tuple[int, str]:
    """Status and text of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", office.port, timeout=60)
    sent = {"Cookie": office.cookie, "Origin": f"http://127.0.0.1:{office.port}", **headers}
    with contextlib.closing(connection):
        connection.request(
            "POST", "/clusters/cluster/checks", text.encode(errors="surrogateescape"), sent
        )
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def wrong(office: Office, text: str, **headers: str) -> list[tuple[int, str]]:
    status, answer = checked(office, text, **headers)
    assert status == 200, answer
    return [(each["line"], each["words"]) for each in json.loads(answer)["wrong"]]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: b: c\n", 1, "not valid YAML: mapping values are not allowed in this context"),
        ("kind: [a\n", 2, "not valid YAML: while parsing a flow sequence"),
        ("kind: Pod\nkind: Pod\n", 2, "given twice, first in line 1"),
        ("- a\n", 1, "wanted an object with apiVersion, kind and metadata"),
        (f"{HEAD}spec:\n  replica: 2\n", 4, 'unknown field "spec.replica"; is it "replicas"?'),
        (f"{HEAD}zzz: 1\n", 3, 'unknown field "zzz"'),
        (f"{HEAD}spec:\n  replicas: two\n", 4, 'wanted a whole number, found "two"'),
        (f"{HEAD}spec:\n  paused: 1\n", 4, "spec.paused: wanted true or false, found 1"),
        (f"{HEAD}metadata:\n  labels: [x]\n", 4, "metadata.labels: wanted fields, found a list"),
        (f"{HEAD}metadata:\n  labels:\n    a: true\n", 5, "wanted a text, found true"),
        ("apiVersion: v1\nkind: Pood\n", 2, "the cluster has no kind Pood in v1"),
        (f"{HEAD}---\napiVersion: v1\nkind: Pod\nspac: 1\n", 6, 'unknown field "spac"'),
        (
            "apiVersion: v1\nkind: Pod\nspec:\n  restartPolicy: Sometimes\n",
            4,
            'wanted one of Always, Never, OnFailure, found "Sometimes"',
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(office: Office, text: str, line: int, words: str) -> None:
    [(found_line, found)] = wrong(office, text)
    assert found_line == line
    assert words in found
    assert found.startswith(f"line {line}: ")


def test_mistakes_are_told_in_the_language_of_the_visitor(office: Office) -> None:
    cookie = f"{office.cookie}; gpupool-language=zh-CN"
    text = f"{HEAD}spec:\n  replica: 2\n  paused: 1\n"
    assert wrong(office, text, Cookie=cookie) == [
        (4, "第 4 行：未知字段“spec.replica”，是否应为“replicas”？"),
        (5, "第 5 行：spec.paused：应为 true 或 false，实际为 1"),
    ]
    [(_, words)] = wrong(office, "a: [1\n", Cookie=cookie)
    assert words == "第 2 行：YAML 无效：缺少“,”或“]”"


@pytest.mark.parametrize("text", ["", "kind: Po", "apiVersion: v1\nkind:\nspec:\n", "# words\n"])
def test_what_is_only_begun_is_not_wrong(office: Office, text: str) -> None:
    assert wrong(office, text) == []


@pytest.mark.parametrize("name", [*STARTERS, *(path.name for path in EXAMPLES)])
def test_all_templates_are_right(office: Office, name: str) -> None:
    by_name = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES}
    assert wrong(office, {**STARTERS, **by_name}[name]) == []


@pytest.mark.parametrize(
    "path",
    [
        *("/api/v1/nodes", "/api/v1/pods", "/api/v1/services", "/api/v1/configmaps"),
        *("/apis/apps/v1/daemonsets", "/apis/gpupool.io/v1alpha1/nodepools"),
        *("/apis/rbac.authorization.k8s.io/v1/clusterroles", "/api/v1/namespaces"),
        *("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/secrets"),
    ],
)
def test_objects_of_the_cluster_are_right(office: Office, path: str) -> None:
    listed = office.finds(path)
    kind = listed["kind"].removesuffix("List")
    for each in listed["items"]:
        text = yaml.safe_dump({"apiVersion": listed["apiVersion"], "kind": kind, **each})
        assert wrong(office, text) == [], each["metadata"]["name"]


def test_absurd_texts_are_answered(office: Office) -> None:
    deep = wrong(office, f"{HEAD}spec: {'[' * 5000}")
    assert "nested deeper than 32 levels" in deep[0][1]
    bomb = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)
    )
    assert "wanted at most 20000 values" in wrong(office, bomb)[0][1]
    many = HEAD + "".join(f"x{number}: 1\n" for number in range(500))
    assert len(wrong(office, many)) == 50
    assert wrong(office, "x" * 300_000) == [], "what is so long is checked when it is sent"
    assert wrong(office, HEAD.replace("apps/v1", "../../secrets"))[0][0] == 2


def test_letters_that_are_none_are_answered(office: Office) -> None:
    assert wrong(office, HEAD, **{"Content-Type": "text/plain; charset=nonsense"}) == []
    assert wrong(office, "\udcff: 1\n") == []


async def test_a_text_of_many_kinds_is_not_looked_up_without_end() -> None:
    asked = []

    async def whole(*wanted: str) -> None:
        asked.append(wanted)

    visit = cast("Any", Mock())
    visit.session.sight.schemas.whole = whole
    text = "".join(f"apiVersion: v1\nkind: K{n % 300}\n---\n" for n in range(600))
    assert await complaints(visit, text) == []
    assert len(asked) == 24


def test_only_the_consoles_own_pages_may_ask(office: Office) -> None:
    assert checked(office, HEAD, Origin="http://evil.example")[0] == 403
    assert checked(office, HEAD, Cookie="")[0] in (303, 401)


def document(text: str) -> Document:
    found = read_document(text)
    assert isinstance(found, Document)
    return found


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        {"properties": {"b": {}}, "x-kubernetes-preserve-unknown-fields": True},
        {"properties": {"a": {"x-kubernetes-int-or-string": True}}},
        {"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}},
        {"properties": {"a": {"$ref": "#/components/schemas/A"}}},
        {"additionalProperties": {"type": "number"}},
        pytest.param({"properties": {"a": {"type": ["string", "null"]}}}, id="OpenAPI 3.1"),
        {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"properties": {"a": {"oneOf": [{"type": "string"}, {"$ref": "#/components/schemas/A"}]}}},
        {"properties": {"a": {"oneOf": [{"type": "string"}, True]}}},
    ],
)
def test_a_schema_that_allows_it_finds_nothing(schema: Obj) -> None:
    circle: Obj = {"A": {"$ref": "#/components/schemas/A"}}
    assert wrong_fields(translator(ENGLISH), circle, schema, document("a: 1\n")) == []


def test_a_field_may_be_called_like_an_index_of_any_length() -> None:
    long = "9" * 5000
    assert field_path(f"spec.a[2].b[{long}]") == ("spec", "a", 2, "b", long)
