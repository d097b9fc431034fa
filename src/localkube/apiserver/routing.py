"""Paths to targets: /api/v1/namespaces/ns/pods/p/log -> (kind pods, "ns", "p", "log")."""

from typing import NamedTuple
from urllib.parse import unquote

from localkube.apiserver import status
from localkube.apiserver.kinds import Kind, Kinds, Subresource
from localkube.apiserver.security.access import quoted


class Target(NamedTuple):
    """What a resource path names. An empty name means the collection."""

    kind: Kind
    namespace: str  # "" also for a list over all namespaces
    name: str
    subresource: str
    sub: Subresource | None
    watched: bool = False  # by a path of the old style: /api/v1/watch/pods

    @property
    def all_namespaces(self) -> bool:
        return self.kind.namespaced and not self.namespace


class NotApi(NamedTuple):
    """Not a path of a resource: discovery, health, or an unknown path (404 in plain text)."""

    path: str


class NoResource(NamedTuple):
    """A known group version without such a resource. Only a user who may use it gets the 404."""

    group: str
    resource: str
    namespace: str
    name: str
    subresource: str


def route(path: str, kinds: Kinds) -> Target | NotApi | NoResource:
    """Raises ApiError 404 for an unknown version of a known group."""
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
    if "%" in path or "/." in path:
        rest = [segment(part) for part in rest]
    return _resource(group, version, rest, kinds)


def segment(part: str) -> str:
    """A part of the path, percent-decoded; refused if it is . or .. or contains / or %."""
    text = unquote(part)
    problems = [f"may not be '{text}'"] if text in (".", "..") else []
    problems += [f"may not contain '{mark}'" for mark in "/%" if mark in text]
    if problems:
        raise status.bad_request(f"Name parameter invalid: {quoted(text)}: {';'.join(problems)}")
    return text


def _resource(group: str, version: str, rest: list[str], kinds: Kinds) -> Target | NoResource:
    watched = rest[0] == "watch" and len(rest) > 1
    if watched:
        rest = rest[1:]
    namespace, parts = _placed(group, version, rest, kinds)
    resource = parts[0]
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 else ""
    kind = kinds.find(group, version, resource)
    misplaced = kind is not None and kind.namespaced and name and not namespace
    sub = kind.subresource(subresource) if kind is not None and subresource else None
    if kind is None or misplaced or len(parts) > 3 or (subresource and sub is None):
        return NoResource(group, resource, namespace, name, subresource)
    return Target(kind, namespace, name, subresource, sub, watched)


def _placed(group: str, version: str, rest: list[str], kinds: Kinds) -> tuple[str, list[str]]:
    """/namespaces/x/pods is in a namespace; /namespaces/x and /namespaces/x/status are of one."""
    if rest[0] != "namespaces" or len(rest) < 3:
        return "", rest
    inner = kinds.find(group, version, rest[2])
    if inner is not None and inner.namespaced:
        return rest[1], rest[2:]
    if not group and rest[2] in ("status", "finalize"):
        return "", rest
    return rest[1], ["", *rest[2:]] if inner is not None else rest[2:]
