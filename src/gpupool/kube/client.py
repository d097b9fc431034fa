"""Kube: one method per verb, on any API server, over whichever transport it was given."""

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, Protocol

import orjson

from gpupool.contract.objects import Obj
from gpupool.kube.errors import refusal
from gpupool.kube.resources import PODS, Resource

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Query = Mapping[str, str]
_NO_QUERY: Query = {}


class Transport(Protocol):
    """How requests travel: HTTPS, or a call inside the process. Raises NoAnswer."""

    async def call(
        self, method: str, path: str, *, query: Query, content_type: str, body: bytes
    ) -> tuple[int, bytes]: ...

    def stream(self, path: str, *, query: Query) -> AsyncIterator[bytes]:
        """Chunks of the answer's body. Raises Refused on a status of 400 or above."""


class Listing(NamedTuple):
    items: list[Obj]
    resource_version: str


class Kube:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Obj:
        return await self._call("GET", resource.path(namespace, name))

    async def list(
        self, resource: Resource, namespace: str = "", *, query: Query = _NO_QUERY
    ) -> Listing:
        found = await self._call("GET", resource.path(namespace), query=query)
        return Listing(found.get("items") or [], found["metadata"]["resourceVersion"])

    def watch(
        self, resource: Resource, namespace: str = "", *, query: Query = _NO_QUERY
    ) -> AsyncIterator[bytes]:
        """Raw chunks of newline-separated events; `mirror.py` makes objects of them."""
        path = resource.path(namespace)
        return self._transport.stream(path, query={**query, "watch": "true"})

    async def create(self, resource: Resource, obj: Obj, subresource: str = "") -> Obj:
        metadata = obj.get("metadata", {})
        name = metadata.get("name", "") if subresource else ""
        path = resource.path(metadata.get("namespace", ""), name, subresource)
        return await self._call("POST", path, body=obj)

    async def update(self, resource: Resource, obj: Obj, subresource: str = "") -> Obj:
        metadata = obj["metadata"]
        path = resource.path(metadata.get("namespace", ""), metadata["name"], subresource)
        return await self._call("PUT", path, body=obj)

    async def update_status(self, resource: Resource, obj: Obj) -> Obj:
        return await self.update(resource, obj, "status")

    async def patch(
        self, path: str, patch: object, *, content_type: str = MERGE_PATCH, query: Query = _NO_QUERY
    ) -> Obj:
        """`path` from Resource.path, so that subresources can be patched too."""
        return await self._call("PATCH", path, body=patch, content_type=content_type, query=query)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, options: Obj | None = None
    ) -> Obj:
        return await self._call("DELETE", resource.path(namespace, name), body=options)

    async def bind(self, pod: Obj, node: str, annotations: Mapping[str, str]) -> None:
        """Binds the very pod that was seen: a namesake made since is refused by its uid."""
        metadata = pod["metadata"]
        binding: Obj = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        if annotations:
            binding["metadata"]["annotations"] = dict(annotations)
        path = PODS.path(metadata["namespace"], metadata["name"], "binding")
        await self._call("POST", path, body=binding)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = JSON,
        query: Query = _NO_QUERY,
    ) -> Obj:
        raw = orjson.dumps(body) if body is not None else b""
        code, answer = await self._transport.call(
            method, path, query=query, content_type=content_type, body=raw
        )
        if code >= 400:
            raise refusal(code, answer)
        parsed: Obj = orjson.loads(answer)
        return parsed
