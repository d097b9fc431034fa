"""Paths to targets: /api/v1/namespaces/ns/pods/p/log -> (kind pods, "ns", "p", "log")."""

from typing import NamedTuple
from urllib.parse import unquote

from gpupool.localcluster.apiserver import status
from gpupool.localcluster.apiserver.kinds import Kind, Kinds, Subresource


class Target(NamedTuple):
    """What a resource path names. An empty name means the collection."""

    kind: Kind
    namespace: str  # "" also for a list over all namespaces
    name: str
    subresource: str
    sub: Subresource | None

    @property
    def all_namespaces(self) -> bool:
        return self.kind.namespaced and not self.namespace


class NotApi(NamedTuple):
    """No resource: discovery, health, or nothing at all. Answered in plain text when unknown."""

    path: str


def route(path: str, kinds: Kinds) -> Target | NotApi:
    """Raises ApiError 404 for a known group version without such a resource."""
    parts = path.split("/")
    if parts[-1] == "":
        parts.pop()
    if len(parts) < 2 or "" in parts[1:]:
        return NotApi(path)
    if parts[1] == "api" and len(parts) > 3:
        group, version, rest = "", parts[2], parts[3:]
    elif parts[1] == "apis" and len(parts) > 4:
        group, version, rest = parts[2], parts[3], parts[4:]
    else:
        return NotApi("/".join(parts))
    if not kinds.has_version(group, version):
        if kinds.has_group(group):
            raise status.no_such_resource()
        return NotApi(path)
    return _resource(group, version, [unquote(part) for part in rest], kinds)


def _resource(group: str, version: str, rest: list[str], kinds: Kinds) -> Target:
    namespace = ""
    # /namespaces/x/pods is in a namespace; /namespaces/x and /namespaces/x/status are of one.
    if rest[0] == "namespaces" and len(rest) > 2:
        inner = kinds.find(group, version, rest[2])
        if inner is not None and inner.namespaced:
            namespace, rest = rest[1], rest[2:]
        elif group or rest[2] not in ("status", "finalize"):
            raise status.no_such_resource()
    kind = kinds.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or (kind.namespaced and len(rest) > 1 and not namespace):
        raise status.no_such_resource()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    sub = kind.subresource(subresource) if subresource else None
    if subresource and sub is None:
        raise status.no_such_resource()
    return Target(kind, namespace, name, subresource, sub)
