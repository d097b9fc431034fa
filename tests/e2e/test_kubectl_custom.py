"""CustomResourceDefinitions by kubectl."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubeclient.objects import Obj
from tests.e2e.kubectl import Kubectl, eventually, stream_of

pytestmark = pytest.mark.kubectl

GROUP = "example.com"
COUNT = {"type": "integer", "minimum": 1, "default": 2, "description": "How many."}
SPEC = {
    "type": "object",
    "required": ["colour"],
    "properties": {
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "count": COUNT,
        "when": {"type": "string", "format": "date-time"},
    },
}


def schema(spec: Obj) -> Obj:
    status = {
        "type": "object",
        "properties": {
            "phase": {"type": "string"},
            "count": {"type": "integer"},
            "selector": {"type": "string"},
        },
    }
    properties = {"spec": spec, "status": status}
    return {
        "openAPIV3Schema": {"type": "object", "description": "A toy.", "properties": properties}
    }


def version(name: str, spec: Obj, *, storage: bool) -> Obj:
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": schema(spec),
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.count",
                "statusReplicasPath": ".status.count",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
            {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }


def definition(plural: str, *versions: Obj) -> Obj:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": plural.removesuffix("s"),
                "kind": plural.removesuffix("s").capitalize(),
                "shortNames": [f"{plural}hort"],
                "categories": ["playthings"],
            },
            "versions": list(versions) or [version("v1", SPEC, storage=True)],
        },
    }


class Toys:
    """A kind of this test alone: kubectl remembers kinds by their names."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl
        self.plural = f"toy{kubectl.namespace.rpartition('-')[2]}s"
        self.singular = self.plural.removesuffix("s")
        self.kind = self.singular.capitalize()
        self.name = f"{self.plural}.{GROUP}"

    def toy(self, name: str, api: str = "v1", **spec: Any) -> Obj:
        return {
            "apiVersion": f"{GROUP}/{api}",
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": spec,
        }

    def define(self, *versions: Obj) -> None:
        self.kubectl.apply(definition(self.plural, *versions))
        self.kubectl.wait("condition=Established", f"crd/{self.name}")


@pytest.fixture
def toys(kubectl: Kubectl) -> Iterator[Toys]:
    made = Toys(kubectl)
    made.define()
    yield made
    kubectl("delete", "crd", made.name, "--ignore-not-found")


def test_a_new_kind_is_served_at_once(toys: Toys) -> None:
    kubectl = toys.kubectl
    assert kubectl.apply(toys.toy("a", colour="red")) == f"{toys.singular}.{GROUP}/a created\n"
    assert kubectl("get", toys.name, "-o", "name") == f"{toys.singular}.{GROUP}/a\n"
    listed = kubectl("api-resources", f"--api-group={GROUP}", "--no-headers")
    rows = [line.split() for line in listed.splitlines()]
    assert [toys.plural, f"{toys.plural}hort", f"{GROUP}/v1", "true", toys.kind] in rows
    assert kubectl.json("get", toys.name, "a")["spec"] == {"colour": "red", "count": 2}


def test_its_columns_are_printed(toys: Toys) -> None:
    kubectl = toys.kubectl
    kubectl.apply(toys.toy("a", colour="red"))
    assert kubectl("get", toys.name).splitlines()[0].split() == ["NAME", "COLOUR", "AGE"]
    wide = kubectl("get", toys.name, "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "COLOUR", "COUNT", "AGE"]
    assert wide[1].split()[:3] == ["a", "red", "2"]


def test_it_is_explained(toys: Toys) -> None:
    text = toys.kubectl("explain", f"{toys.plural}.spec")
    assert "colour\t<string> -required-" in text
    assert "count\t<integer>" in text
    assert "How many." in toys.kubectl("explain", toys.plural, "--recursive") or "How many." in text


def test_wrong_objects_are_refused_with_every_reason(toys: Toys) -> None:
    wrong = toys.toy("a", colour="green", count=0, when="today")
    said = toys.kubectl.refused("apply", "-f", "-", stdin=stream_of(wrong))
    assert f'The {toys.kind} "a" is invalid:' in said
    assert '* spec.colour: Unsupported value: "green": supported values: "red", "blue"' in said
    assert (
        "* spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1"
        in said
    )
    assert "* spec.when: Invalid value" in said
    said = toys.kubectl.refused("apply", "-f", "-", stdin=stream_of(toys.toy("a")))
    assert "spec.colour: Required value" in said


def test_unknown_fields_are_refused_or_dropped(toys: Toys) -> None:
    odd = toys.toy("a", colour="red", size=3)
    said = toys.kubectl.refused("create", "-f", "-", stdin=stream_of(odd))
    assert 'strict decoding error: unknown field "spec.size"' in said
    ended = toys.kubectl.run("create", "--validate=ignore", "-f", "-", stdin=stream_of(odd))
    assert ended.code == 0, ended.err
    assert "size" not in toys.kubectl.json("get", toys.name, "a")["spec"]


def test_it_is_scaled(toys: Toys) -> None:
    kubectl = toys.kubectl
    kubectl.apply(toys.toy("a", colour="red"))
    kubectl("scale", toys.name, "a", "--replicas=5")
    assert kubectl.field(".spec.count", toys.name, "a") == "5"
    said = kubectl.refused("scale", toys.name, "a", "--replicas=0")
    assert "spec.count" in said or "spec.replicas" in said


def test_its_status_is_apart(toys: Toys) -> None:
    kubectl = toys.kubectl
    kubectl.apply({**toys.toy("a", colour="red"), "status": {"phase": "Ignored"}})
    assert kubectl.field(".status.phase", toys.name, "a") == ""
    patch = '{"status":{"phase":"Good"},"spec":{"colour":"blue"}}'
    kubectl("patch", toys.name, "a", "--subresource=status", "--type=merge", "-p", patch)
    found = kubectl.json("get", toys.name, "a")
    assert (found["status"]["phase"], found["spec"]["colour"]) == ("Good", "red")
    assert found["metadata"]["generation"] == 1
    kubectl.wait("jsonpath={.status.phase}=Good", f"{toys.name}/a")


def test_it_is_watched_edited_and_deleted(toys: Toys) -> None:
    kubectl = toys.kubectl
    with kubectl.start("get", toys.name, "-w") as watch:
        kubectl.apply(toys.toy("a", colour="red"))
        watch.shows("red")
        kubectl("patch", toys.name, "a", "--type=merge", "-p", '{"spec":{"colour":"blue"}}')
        watch.shows("blue")
    kubectl("delete", toys.name, "a")
    assert kubectl.names(toys.name) == []


def test_a_category_finds_it(toys: Toys) -> None:
    toys.kubectl.apply(toys.toy("a", colour="red"))
    assert "a" in toys.kubectl.names("playthings")


def test_two_versions_are_one_object(kubectl: Kubectl) -> None:
    toys = Toys(kubectl)
    toys.define(version("v1", SPEC, storage=True), version("v2", SPEC, storage=False))
    kubectl.apply(toys.toy("a", "v2", colour="red"))
    old = kubectl.json("get", f"{toys.plural}.v1.{GROUP}", "a")
    new = kubectl.json("get", f"{toys.plural}.v2.{GROUP}", "a")
    assert old["apiVersion"] == f"{GROUP}/v1"
    assert new["apiVersion"] == f"{GROUP}/v2"
    assert old["spec"] == new["spec"]
    kubectl.apply(toys.toy("a", "v1", colour="blue"))
    assert kubectl.field(".spec.colour", f"{toys.plural}.v2.{GROUP}", "a") == "blue"
    toys.define(version("v1", SPEC, storage=False), version("v2", SPEC, storage=True))
    for api in ("v1", "v2"):
        found = kubectl.json("get", f"{toys.plural}.{api}.{GROUP}", "a")
        assert found["apiVersion"] == f"{GROUP}/{api}"
    kubectl("delete", "crd", toys.name)


def test_a_changed_schema_holds_at_once(toys: Toys) -> None:
    kubectl = toys.kubectl
    kubectl.apply(toys.toy("a", colour="red"))
    more = json.loads(json.dumps(SPEC))
    more["properties"]["size"] = {"type": "integer"}
    toys.define(version("v1", more, storage=True))
    kubectl.apply(toys.toy("a", colour="red", size=3))
    assert kubectl.field(".spec.size", toys.name, "a") == "3"
    assert "size\t<integer>" in kubectl("explain", f"{toys.plural}.spec")


def test_a_deleted_definition_takes_its_objects_along(toys: Toys) -> None:
    kubectl = toys.kubectl
    kubectl.apply(toys.toy("a", colour="red"))
    kubectl("delete", "crd", toys.name)
    said = kubectl.refused("get", toys.name)
    assert "the server doesn't have a resource type" in said
    toys.define()
    assert kubectl.names(toys.name) == []


def test_a_definition_that_makes_no_sense(kubectl: Kubectl) -> None:
    toys = Toys(kubectl)
    wrong = definition(toys.plural)
    del wrong["spec"]["versions"][0]["schema"]
    said = kubectl.refused("create", "-f", "-", stdin=stream_of(wrong))
    assert "spec.versions[0].schema.openAPIV3Schema: Required value" in said
    wrong = definition(toys.plural)
    wrong["metadata"]["name"] = f"games.{GROUP}"
    said = kubectl.refused("create", "-f", "-", stdin=stream_of(wrong))
    assert 'must be spec.names.plural+"."+spec.group' in said


def test_owners_of_any_kind_take_dependents_along(toys: Toys) -> None:
    kubectl = toys.kubectl
    kubectl.apply(toys.toy("a", colour="red"))
    owner = {
        "apiVersion": f"{GROUP}/v1",
        "kind": toys.kind,
        "name": "a",
        "uid": kubectl.field(".metadata.uid", toys.name, "a"),
    }
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "child", "ownerReferences": [owner]},
    }
    kubectl.apply(child)
    kubectl("delete", toys.name, "a")
    eventually(lambda: "child" not in kubectl.names("configmaps"))


def test_rules_in_the_schema_are_kept(kubectl: Kubectl) -> None:
    toys = Toys(kubectl)
    bounded = json.loads(json.dumps(SPEC))
    bounded["properties"]["most"] = {"type": "integer"}
    rule = {"rule": "!has(self.most) || self.count <= self.most", "message": "count is over most"}
    bounded["x-kubernetes-validations"] = [rule]
    ended = kubectl.run(
        "apply",
        "-f",
        "-",
        stdin=stream_of(definition(toys.plural, version("v1", bounded, storage=True))),
    )
    if ended.code:
        assert "x-kubernetes-validations" in ended.err  # refused, never silently accepted
        return
    kubectl.wait("condition=Established", f"crd/{toys.name}")
    bad = toys.toy("a", colour="red", count=5, most=3)
    said = kubectl.refused("apply", "-f", "-", stdin=stream_of(bad))
    assert "count is over most" in said
    kubectl.apply(toys.toy("a", colour="red", count=3, most=3))
    kubectl("delete", "crd", toys.name)
