"""What a case of the recording is: some requests that prepare, and the one that is recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True)
class Request:
    """One HTTP request.

    `{ns}` in the path or the body stands for the namespace that the case has to itself, and
    `${name.some.path}` for a value of the answer that was saved under that name.
    """

    method: str
    path: str
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)
    save: str = ""
    # Send it again until this status comes: what the server learns from its own watches (quota,
    # RBAC, CRDs) takes effect a moment after the write is answered.
    until_status: int = 0
    # A watch: stop reading after so many events. The stream may end before that by itself.
    events: int = 0
    # So many blanks after the body, for answers to bodies too long to be kept in a fixture.
    padding: int = 0
    # Without the administrator's token.
    anonymous: bool = False


@dataclass(frozen=True)
class Case:
    name: str
    request: Request
    prelude: tuple[Request, ...] = ()

    @property
    def namespace(self) -> str:
        """A namespace of its own, so that cases do not see one another's objects."""
        return "t-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:50].strip("-")

    @property
    def namespaced(self) -> bool:
        return any("{ns}" in str(each) for each in (*self.prelude, self.request))


def get(path: str, accept: str = "", **more: Any) -> Request:
    return Request("GET", path, headers={"Accept": accept} if accept else {}, **more)


def post(path: str, body: Json, accept: str = "", **more: Any) -> Request:
    return Request("POST", path, body, headers={"Accept": accept} if accept else {}, **more)


def put(path: str, body: Json, **more: Any) -> Request:
    return Request("PUT", path, body, **more)


def patch(path: str, body: Json, kind: str = MERGE, **more: Any) -> Request:
    return Request("PATCH", path, body, headers={"Content-Type": kind}, **more)


def apply(path: str, manager: str, body: Json, force: bool = False, **more: Any) -> Request:
    """A server-side apply."""
    query = f"?fieldManager={manager}" + ("&force=true" if force else "")
    return patch(path + query, body, APPLY, **more)


def delete(path: str, body: Json = None, **more: Any) -> Request:
    return Request("DELETE", path, body, **more)


def watch(path: str, events: int = 1, accept: str = "", timeout: int = 2) -> Request:
    query = f"{path}{'&' if '?' in path else '?'}watch=1&timeoutSeconds={timeout}"
    return get(query, accept, events=events)
