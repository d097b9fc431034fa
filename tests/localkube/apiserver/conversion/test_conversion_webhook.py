"""A CRD's conversion webhook is asked whenever an object is wanted in another version."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import CRDS, Resource
from localkube.controllers import crd_cleanup
from tests.localkube.apiserver.admission.webhook_server import patching
from tests.localkube.apiserver.conversion.converting import (
    NEW,
    OLD,
    Registry,
    a_registry,
    by_webhook,
    person,
    sensible,
)

NONE: Obj = {"strategy": "None"}


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    async with a_registry(tmp_path) as found:
        await found.define()
        yield found


async def test_what_is_sent_in_another_version_is_stored_converted(registry: Registry) -> None:
    made = await registry.kube.create(OLD, person("v1beta1", name="ada", full="Ada Lovelace"))
    assert made["apiVersion"] == "example.com/v1beta1"
    stored = registry.stored("ada")
    assert stored["apiVersion"] == "example.com/v1"
    assert stored["spec"] == {"first": "Ada", "last": "Lovelace"}
    read = await registry.kube.get(NEW, "ada", "ns")
    assert read["spec"] == stored["spec"]
    assert made["spec"] == {"name": "Ada Lovelace"}
    assert made["metadata"]["uid"] == read["metadata"]["uid"]
    assert made["metadata"]["resourceVersion"] == read["metadata"]["resourceVersion"]


async def test_the_webhook_is_asked_as_kubernetes_asks(registry: Registry) -> None:
    await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
    assert registry.calls == 0  # it lies in the version it was sent in
    await registry.kube.get(OLD, "ada", "ns")
    (document,), (request,) = registry.webhook.reviews, registry.webhook.requests
    assert str(request.rel_url) == "/convert?timeout=30s"
    assert document.pop("response") == {
        "uid": "",
        "convertedObjects": None,
        "result": {"metadata": {}},
    }
    assert len(document["request"].pop("uid")) == 36
    assert document == {
        "kind": "ConversionReview",
        "apiVersion": "apiextensions.k8s.io/v1",
        "request": {
            "desiredAPIVersion": "example.com/v1beta1",
            "objects": [registry.stored("ada")],
        },
    }


async def test_a_list_is_converted_by_one_call_and_each_object_once(registry: Registry) -> None:
    for name in ("a", "b", "c"):
        await registry.kube.create(NEW, person("v1", name=name, first=name, last="x"))
    for _ in range(2):
        found = (await registry.kube.list(OLD)).items
        assert [each["spec"]["name"] for each in found] == ["a x", "b x", "c x"]
    assert registry.calls == 1


async def test_a_watch_shows_objects_and_changes_converted(registry: Registry) -> None:
    await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
    events = registry.events(OLD)
    assert await anext(events) == ("ADDED", "Ada L")
    change = {"spec": {"first": "A."}}
    await registry.kube.patch(NEW.path("ns", "ada"), change)
    assert await anext(events) == ("MODIFIED", "A. L")
    await registry.kube.delete(NEW, "ada", "ns")
    assert await anext(events) == ("DELETED", "A. L")
    await events.aclose()


async def test_put_patch_and_apply_work_on_the_version_they_name(registry: Registry) -> None:
    made = await registry.kube.create(NEW, person("v1", first="Ada", last="L", seats=1))
    old = await registry.kube.get(OLD, "ada", "ns")
    put = await registry.kube.update(OLD, old | {"spec": {"name": "Eva B", "seats": 1}})
    assert put["spec"] == {"name": "Eva B", "seats": 1}
    assert put["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    path = OLD.path("ns", "ada")
    patched = await registry.kube.patch(path, {"spec": {"name": "Eva C"}})
    assert patched["spec"] == {"name": "Eva C", "seats": 1}
    applied = await registry.kube.patch(
        path,
        person("v1beta1", full="Eva D"),
        content_type="application/apply-patch+yaml",
        query={"fieldManager": "me", "force": "true"},
    )
    assert applied["spec"]["name"] == "Eva D"
    assert registry.stored("ada")["spec"] == {"first": "Eva", "last": "D", "seats": 1}
    new = await registry.kube.patch(
        NEW.path("ns", "grace"),
        person("v1", name="grace", first="Grace", last="H"),
        content_type="application/apply-patch+yaml",
        query={"fieldManager": "me"},
    )
    assert new["spec"] == {"first": "Grace", "last": "H"}


async def test_scale_finds_the_replicas_of_its_version(registry: Registry) -> None:
    await registry.kube.create(NEW, person("v1", first="Ada", last="L", seats=3))
    scale = await registry.kube.page(OLD.path("ns", "ada", "scale"))
    assert scale["spec"] == {"replicas": 3}
    written = await registry.kube.patch(OLD.path("ns", "ada", "scale"), {"spec": {"replicas": 5}})
    assert written["spec"] == {"replicas": 5}
    stored = registry.stored("ada")
    assert stored["spec"] == {"first": "Ada", "last": "L", "seats": 5}
    assert written["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]


async def test_deleting_answers_in_the_version_that_was_asked_for(registry: Registry) -> None:
    held = person("v1", first="Ada", last="L")
    held["metadata"]["finalizers"] = ["example.com/stay"]
    await registry.kube.create(NEW, held)
    gone = await registry.kube.delete(OLD, "ada", "ns")
    assert gone["spec"] == {"name": "Ada L"}
    assert "deletionTimestamp" in gone["metadata"]
    assert registry.stored("ada")["apiVersion"] == "example.com/v1"


async def test_a_changed_storage_version_is_reached_by_a_write_without_effect(
    registry: Registry,
) -> None:
    await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
    await registry.redefine(by_webhook(registry.webhook, "convert"), storage="v1beta1")
    assert registry.stored("ada")["apiVersion"] == "example.com/v1"
    assert (await registry.kube.get(NEW, "ada", "ns"))["spec"] == {"first": "Ada", "last": "L"}
    assert registry.calls == 0
    found = await registry.kube.get(NEW, "ada", "ns")
    await registry.kube.update(NEW, found)
    assert registry.stored("ada")["apiVersion"] == "example.com/v1beta1"
    assert registry.stored("ada")["spec"] == {"name": "Ada L"}
    moved = registry.stored("ada")["metadata"]["resourceVersion"]
    await registry.kube.update(NEW, await registry.kube.get(NEW, "ada", "ns"))
    assert registry.stored("ada")["metadata"]["resourceVersion"] == moved


async def test_without_a_webhook_versions_differ_in_name_alone(registry: Registry) -> None:
    await registry.redefine(NONE)
    await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
    found = await registry.kube.get(OLD, "ada", "ns")
    assert (found["apiVersion"], found["spec"]["first"]) == ("example.com/v1beta1", "Ada")
    assert registry.calls == 0


async def test_what_the_version_does_not_know_is_dropped(tmp_path: Path) -> None:
    def talkative(request: Obj) -> Obj:
        made = sensible(request)
        for obj in made["convertedObjects"]:
            obj["spec"]["chatter"] = True
        return made

    async with a_registry(tmp_path, convert=talkative) as registry:
        await registry.define()
        await registry.kube.create(OLD, person("v1beta1", full="Ada L"))
        assert registry.stored("ada")["spec"] == {"first": "Ada", "last": "L"}


async def test_an_admission_webhook_sees_the_version_its_rules_name(tmp_path: Path) -> None:
    seen: list[Obj] = []

    def admit(request: Obj) -> Obj:
        seen.append(request["object"])
        return patching({"op": "replace", "path": "/spec/first", "value": "Eva"})

    async with a_registry(tmp_path, admit=admit) as registry:
        await registry.define()
        await registry.admit("admit", "v1")
        made = await registry.kube.create(OLD, person("v1beta1", full="Ada L"))
    (given,) = seen
    assert given["apiVersion"] == "example.com/v1"
    assert given["spec"] == {"first": "Ada", "last": "L"}
    assert made["spec"] == {"name": "Eva L"}


async def test_a_field_selector_is_refused_where_it_would_look_at_another_version(
    registry: Registry,
) -> None:
    await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
    found = await registry.kube.list(NEW, query={"fieldSelector": "spec.first=Ada"})
    assert len(found.items) == 1
    code, text = await registry.refusal(
        registry.kube.list(OLD, query={"fieldSelector": "spec.name=Ada L"})
    )
    assert code == 400
    assert "stored in example.com/v1 and converted by a webhook" in text
    assert (await registry.kube.list(OLD, query={"fieldSelector": "metadata.name=ada"})).items


def test_a_crd_is_emptied_in_its_storage_version() -> None:
    versions = [
        {"name": "v2", "served": True, "storage": False},
        {"name": "v1", "served": True, "storage": True},
    ]
    names = {"plural": "people", "kind": "Person"}
    crd = {"spec": {"group": "g", "scope": "Cluster", "names": names, "versions": versions}}
    found = crd_cleanup._resource(crd)
    assert found == Resource("g", "v1", "people", "Person", namespaced=False)


async def test_a_crd_that_is_gone_takes_its_webhook_along(registry: Registry) -> None:
    path = CRDS.path(name="people.example.com")
    await registry.kube.patch(path, {"metadata": {"finalizers": None}})
    await registry.kube.delete(CRDS, "people.example.com")
    assert not registry.server.api.conversions._webhooks
