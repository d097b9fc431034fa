"""An API server with a CRD of two versions, and the webhook that converts between them.

v1 (stored) has `spec.first` and `spec.last`, v1beta1 has them in one text, `spec.name`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import CRDS, NAMESPACES, Resource
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import ApiServer, build
from tests.conformance.api_server import NoNodes
from tests.faults.in_process import certificates_for_tests
from tests.localkube.apiserver.admission.webhook_server import WebhookServer, serving

NEW = Resource("example.com", "v1", "people", "Person", namespaced=True)
OLD = Resource("example.com", "v1beta1", "people", "Person", namespaced=True)
_MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
Answering = Callable[[Obj], Any]


def renamed(obj: Obj, desired: str) -> Obj:
    """As the webhook of a sensible person converts."""
    spec = dict(obj.get("spec") or {})
    if desired.endswith("/v1"):
        first, _, last = spec.pop("name", "").partition(" ")
        spec |= {"first": first, "last": last}
    else:
        spec["name"] = f"{spec.pop('first', '')} {spec.pop('last', '')}"
    return obj | {"apiVersion": desired, "spec": spec}


def sensible(request: Obj) -> Obj:
    desired = request["desiredAPIVersion"]
    return success([renamed(obj, desired) for obj in request["objects"]])


def success(objects: list[Any]) -> Obj:
    return {"convertedObjects": objects, "result": {"status": "Success"}}


def definition(conversion: Obj, *, storage: str = "v1") -> Obj:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "people.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "people", "kind": "Person", "listKind": "PersonList"},
            "conversion": conversion,
            "versions": [
                _version("v1", ("first", "last"), storage),
                _version("v1beta1", ("name",), storage),
            ],
        },
    }


def _version(name: str, fields: tuple[str, ...], storage: str) -> Obj:
    spec = {
        "type": "object",
        "properties": {field: {"type": "string"} for field in fields}
        | {"seats": {"type": "integer"}},
    }
    return {
        "name": name,
        "served": True,
        "storage": name == storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        "selectableFields": [{"jsonPath": f".spec.{fields[0]}"}],
        "subresources": {
            "scale": {"specReplicasPath": ".spec.seats", "statusReplicasPath": ".status.seats"}
        },
    }


def by_webhook(server: WebhookServer, path: str, versions: tuple[str, ...] = ("v1",)) -> Obj:
    config = {"url": f"{server.url}/{path}", "caBundle": server.ca_bundle}
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": config, "conversionReviewVersions": list(versions)},
    }


def person(version: str, name: str = "ada", full: str = "", **spec: Any) -> Obj:
    """`full`: their whole name, in v1beta1."""
    if full:
        spec["name"] = full
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Person",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": spec,
    }


class Registry:
    """The API server, its client, and the webhook."""

    def __init__(self, server: ApiServer, webhook: WebhookServer) -> None:
        self.server = server
        self.webhook = webhook
        self.kube: Kube = server.client(ADMIN)

    @property
    def calls(self) -> int:
        return len(self.webhook.reviews)

    def stored(self, name: str) -> Obj:
        """The object as it lies in the store."""
        record = self.server.api.store.get("people.example.com", "ns", name)
        assert record is not None
        return record.obj()

    async def events(self, resource: Resource) -> AsyncGenerator[tuple[str, str], None]:
        """Types and whole names, from a watch; after an error its text, and the end."""
        async for chunk in self.kube.watch(resource):
            for line in chunk.splitlines():
                event = orjson.loads(line)
                obj = event["object"]
                yield event["type"], obj["message"] if "code" in obj else obj["spec"]["name"]

    async def refusal(self, call: Awaitable[object]) -> tuple[int, str]:
        with pytest.raises(Refused) as caught:
            await call
        return caught.value.code, str(caught.value)

    async def admit(self, path: str, version: str) -> None:
        """A mutating webhook for one version, which means the objects of all."""
        rule = {"apiGroups": ["*"], "apiVersions": [version], "operations": ["CREATE"]}
        hook = {
            "name": "a.b.c",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {
                "url": f"{self.webhook.url}/{path}",
                "caBundle": self.webhook.ca_bundle,
            },
            "rules": [rule | {"resources": ["people"]}],
        }
        await self.kube.create(_MUTATING, {"metadata": {"name": "h"}, "webhooks": [hook]})

    async def define(self, versions: tuple[str, ...] = ("v1",)) -> None:
        crd = definition(by_webhook(self.webhook, "convert", versions))
        await self.kube.create(CRDS, crd)

    async def redefine(self, conversion: Obj, **how: Any) -> None:
        found = await self.kube.get(CRDS, "people.example.com")
        spec = definition(conversion, **how)["spec"]
        await self.kube.update(CRDS, found | {"spec": spec})


def _as_conversion(answering: Answering) -> Callable[[Obj], Any]:
    """The test server speaks AdmissionReview; this puts a ConversionReview in its place."""

    async def answer(request: Obj) -> web.Response:
        made = answering(request)
        if hasattr(made, "__await__"):
            made = await made
        if isinstance(made, web.Response):
            return made
        review = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "response": {"uid": request["uid"]} | made,
        }
        reply = web.json_response(review)
        reply.force_close()
        return reply

    return answer


@asynccontextmanager
async def a_registry(directory: Path, **paths: Answering) -> AsyncIterator[Registry]:
    """`convert` is there and sensible unless a test gives another."""
    answering = {"convert": sensible} | paths
    behaviours = {
        name: each if name == "admit" else _as_conversion(each) for name, each in answering.items()
    }
    async with serving(**behaviours) as webhook:
        server = build(directory, certificates_for_tests(), StaticTokens(), NoNodes())
        try:
            registry = Registry(server, webhook)
            await registry.kube.create(NAMESPACES, {"metadata": {"name": "ns"}})
            yield registry
        finally:
            await server.end()
