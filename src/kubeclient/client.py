"""Kube: a client with one method per verb, for any API server and over any transport."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, runtime_checkable

import orjson

from kubeclient.errors import Expired, NoAnswer, NotSent, refusal
from kubeclient.objects import Obj
from kubeclient.resources import PODS, Resource

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"

Query = Mapping[str, str]
Headers = Mapping[str, str]  # names in lower case
_NO_QUERY: Query = {}
# Few calls for a large cluster, and each is answered within seconds.
_PAGE_ITEMS = 2000
_WHERE = "is the server in the kubeconfig an API server?"


class Transport(Protocol):
    """Sends requests: over HTTPS, or as a call inside the process. Raises NoAnswer."""

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]: ...

    def stream(self, path: str, *, query: Query, headers: Headers) -> AsyncGenerator[bytes, None]:
        """Chunks of the answer's body. Raises Refused on a status of 400 or above."""


class WebSocket(Protocol):
    async def send(self, message: bytes) -> None: ...

    async def receive(self) -> bytes | None:
        """None: it was closed. Raises NoAnswer."""


@runtime_checkable
class SocketTransport(Protocol):
    """A transport that also opens WebSockets."""

    def websocket(
        self, path: str, *, query: Query, protocol: str
    ) -> AbstractAsyncContextManager[WebSocket]:
        """Raises Refused, NoAnswer."""


class Listing(NamedTuple):
    items: list[Obj]
    resource_version: str


class Page(NamedTuple):
    items: list[Obj]
    resource_version: str
    anew: bool  # the pages before are of an older state: forget them


def _page(found: Obj, path: str, *, anew: bool = False) -> Page:
    match found:
        case {"metadata": {"resourceVersion": str(version)}}:
            # Servers written in Go send an empty list as null.
            return Page(found.get("items") or [], version, anew)
        case _:
            raise NoAnswer(f"GET {path}: the answer is not a list of Kubernetes; {_WHERE}")


class Kube:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Obj:
        for what, given in (("namespace", namespace or "-"), (resource.kind.lower(), name)):
            # An empty name would list all of them, and these two lead to other paths.
            if given in ("", ".", ".."):
                raise NotSent(f'"{given}" cannot be the name of a {what}: give its name')
        if resource.namespaced and not namespace:
            raise NotSent(f'"" cannot be the namespace of {resource.kind.lower()} {name}')
        path = resource.path(namespace, name)
        found = await self._call("GET", path)
        if not isinstance(found.get("metadata"), dict):
            raise NoAnswer(f"GET {path}: the answer is not an object of Kubernetes; {_WHERE}")
        return found

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        query: Query = _NO_QUERY,
        metadata_only: bool = False,
    ) -> Listing:
        """All of them, read in pages. A query with a limit of its own gets that one page."""
        items: list[Obj] = []
        version = ""
        pages = self.pages(resource, namespace, query=query, metadata_only=metadata_only)
        async for page in pages:
            if page.anew:
                items.clear()
            items += page.items
            version = page.resource_version
        return Listing(items, version)

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        query: Query = _NO_QUERY,
        metadata_only: bool = False,
    ) -> AsyncIterator[Page]:
        """All of them, as one state of the cluster: a transport limits the time of one call, and
        who keeps less than whole objects need not have all of them in memory at once."""
        path, accept = resource.path(namespace), _METADATA.format("List") if metadata_only else JSON
        if "limit" in query:
            yield _page(await self._call("GET", path, query=query, accept=accept), path)
            return
        asked: Query = {**query, "limit": str(_PAGE_ITEMS)}
        while True:
            try:
                found = await self._call("GET", path, query=asked, accept=accept)
            except Expired:
                if "continue" not in asked:
                    raise
                # The version of the first page was compacted meanwhile. Other pages would show a
                # later state, so all is read again, as one state.
                found = await self._call("GET", path, query=query, accept=accept)
                yield _page(found, path, anew=True)
                return
            yield _page(found, path)
            more = found["metadata"].get("continue")
            if not more:
                return
            # Of the first page a server looks at the version; of the others it refuses one.
            rest = {k: v for k, v in query.items() if not k.startswith("resourceVersion")}
            asked = {**rest, "limit": str(_PAGE_ITEMS), "continue": more}

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        query: Query = _NO_QUERY,
        metadata_only: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Raw chunks of newline-separated events; `mirror.py` makes objects of them."""
        accept = _METADATA.format("") if metadata_only else JSON
        return self._transport.stream(
            resource.path(namespace),
            query={**query, "watch": "true"},
            headers={"accept": accept},
        )

    async def create(
        self, resource: Resource, obj: Obj, subresource: str = "", *, query: Query = _NO_QUERY
    ) -> Obj:
        metadata = obj.get("metadata", {})
        name = metadata.get("name", "") if subresource else ""
        path = resource.path(metadata.get("namespace", ""), name, subresource)
        return await self._call("POST", path, body=obj, query=query)

    async def update(
        self, resource: Resource, obj: Obj, subresource: str = "", *, query: Query = _NO_QUERY
    ) -> Obj:
        metadata = obj["metadata"]
        path = resource.path(metadata.get("namespace", ""), metadata["name"], subresource)
        return await self._call("PUT", path, body=obj, query=query)

    async def update_status(self, resource: Resource, obj: Obj) -> Obj:
        return await self.update(resource, obj, "status")

    async def patch(
        self,
        path: str,
        patch: object,
        *,
        content_type: str = MERGE_PATCH,
        query: Query = _NO_QUERY,
        metadata_only: bool = False,
    ) -> Obj:
        """`path` from Resource.path, so that subresources can be patched too. `metadata_only`: of
        the answer, for objects that may be large."""
        accept = _METADATA.format("") if metadata_only else JSON
        return await self._call(
            "PATCH", path, body=patch, content_type=content_type, accept=accept, query=query
        )

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, options: Obj | None = None
    ) -> Obj:
        return await self._call("DELETE", resource.path(namespace, name), body=options)

    async def bind(self, pod: Obj, node: str, annotations: Mapping[str, str]) -> None:
        """Bind the pod as it was seen.

        The server refuses a new pod of the same name (by its uid), and a pod that was written to
        since (by its resourceVersion). The fencing of schedulers depends on the latter.
        """
        metadata = pod["metadata"]
        binding: Obj = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        if annotations:
            binding["metadata"]["annotations"] = dict(annotations)
        path = PODS.path(metadata["namespace"], metadata["name"], "binding")
        await self._call("POST", path, body=binding)

    async def evict(self, pod: Obj) -> None:
        """Through the eviction API, which minds disruption budgets (TooMany). The uid protects a
        pod of the same name that a StatefulSet may have made meanwhile (Conflict)."""
        metadata = pod["metadata"]
        eviction: Obj = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "deleteOptions": {"preconditions": {"uid": metadata["uid"]}},
        }
        await self.create(PODS, eviction, "eviction")

    def logs(self, namespace: str, pod: str, query: Query) -> AsyncGenerator[bytes, None]:
        """What a container of the pod has written, in chunks. Raises Refused, NoAnswer."""
        path = PODS.path(namespace, pod, "log")
        return self._transport.stream(path, query=query, headers={"accept": "text/plain, */*"})

    def websocket(
        self, path: str, *, query: Query, protocol: str
    ) -> AbstractAsyncContextManager[WebSocket]:
        """Raises Refused, NoAnswer."""
        if not isinstance(self._transport, SocketTransport):
            raise NoAnswer(f"GET {path}: this way to the API server has no WebSockets")
        return self._transport.websocket(path, query=query, protocol=protocol)

    async def page(self, path: str) -> Obj:
        """GET a document that is not a resource: discovery, version."""
        return await self._call("GET", path)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = JSON,
        accept: str = JSON,
        query: Query = _NO_QUERY,
    ) -> Obj:
        raw = orjson.dumps(body) if body is not None else b""
        headers = {"content-type": content_type, "accept": accept}
        code, answer = await self._transport.call(
            method, path, query=query, headers=headers, body=raw
        )
        if code >= 400:
            raise refusal(code, answer)
        try:
            parsed: Obj = orjson.loads(answer)
        except orjson.JSONDecodeError as error:
            words = f"the answer is not JSON ({error}); {_WHERE}"
            raise NoAnswer(f"{method} {path}: {words}") from error
        if not isinstance(parsed, dict):
            raise NoAnswer(f"{method} {path}: the answer is no JSON object; {_WHERE}")
        return parsed
