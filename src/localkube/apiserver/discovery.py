"""Discovery: what the server serves, in the two forms that clients ask for, and its version.

    /api  /apis                                   aggregated (apidiscovery.k8s.io) or legacy
    /api/v1  /apis/{group}  /apis/{group}/{version}   legacy only
    /                                             every path that is answered
    /version

Documents are made once per change of the kinds.
"""

import base64
import hashlib
import platform
import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import groupby

import orjson

from kubeclient.objects import Obj
from localkube.about import KUBERNETES_VERSION
from localkube.apiserver import status
from localkube.apiserver.aggregation.documents import remote_resources
from localkube.apiserver.aggregation.registry import Remote, Remotes
from localkube.apiserver.kinds import Kind, Kinds, Subresource
from localkube.apiserver.request import Answer

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
_MEDIA_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_ANY_JSON = ("application/json", "application/*", "*/*")
_OTHER_PATHS = (
    *("/healthz", "/livez", "/readyz", "/metrics", "/openapi/v2", "/openapi/v3", "/version"),
)
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}
_NO_STAGE = 3
_CUSTOM_PRIORITY = 1000
# What Go calls the machines that it and Python name differently.
_GO_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@cache
def _version_body() -> bytes:
    machine = platform.machine().lower()
    major, minor = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]
    document = {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"{KUBERNETES_VERSION}+localkube",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{_GO_MACHINES.get(machine, machine)}",
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2)


class Discovery:
    """`remotes`: what other API servers answer; shown beside what this one does."""

    def __init__(self, kinds: Kinds, remotes: Remotes | None = None) -> None:
        self._kinds = kinds
        self._remotes = remotes if remotes is not None else Remotes(kinds)
        self._generation = (-1, -1)
        self._legacy: dict[str, bytes] = {}
        self._aggregated: dict[tuple[str, str], tuple[bytes, str]] = {}

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer | None:
        """None: not a path of discovery. `headers` have names in lower case."""
        path = path.rstrip("/")
        if path == "/version":
            return Answer(200, _version_body())
        if path and not path.startswith("/api"):
            return None
        self._remake()
        if not path:
            paths = sorted([*self._legacy, "/api", *_OTHER_PATHS])
            return Answer(200, orjson.dumps({"paths": paths}, option=orjson.OPT_INDENT_2))
        form = _form(headers.get("accept", ""), may_aggregate=path in ("/api", "/apis"))
        if form:
            return self._aggregated_answer(path, form, headers.get("if-none-match", ""))
        if path == "/api":
            return Answer(200, orjson.dumps(_api_versions(headers.get("host", ""))) + b"\n")
        body = self._legacy.get(path)
        if body is not None:
            return Answer(200, body)
        if path.count("/") == 3 and path.rpartition("/")[0] in self._legacy:
            raise status.no_such_resource()
        return None

    def _aggregated_answer(self, path: str, version: str, known: str) -> Answer:
        body, etag = self._aggregated[path, version]
        headers = (("ETag", etag), ("Vary", "Accept"), ("Cache-Control", "public"))
        if etag in (tag.strip() for tag in known.split(",")):
            return Answer(304, headers=headers)
        return Answer(200, body, _AGGREGATED.format(version=version), headers)

    def _remake(self) -> None:
        generation = (self._kinds.generation, self._remotes.generation)
        if self._generation == generation:
            return
        self._generation = generation
        groups = _grouped(self._kinds, self._remotes)
        self._legacy = {path: orjson.dumps(d) + b"\n" for path, d in _legacy(groups).items()}
        self._aggregated = {}
        for version in ("v2",):
            for path in ("/api", "/apis"):
                chosen = [group for group in groups if (path == "/apis") == bool(group)]
                items = [_aggregated_group(group, groups[group]) for group in chosen]
                body = orjson.dumps(_aggregated_list(items, version)) + b"\n"
                etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
                self._aggregated[path, version] = body, etag


# By version, the preferred one first: the kinds that we serve in it, or who serves it for us.
Versions = dict[str, list[Kind] | Remote]


def _grouped(kinds: Kinds, remotes: Remotes) -> dict[str, Versions]:
    """Groups in order of their priority: Kubernetes' own as they were added, then all others."""
    own = list(dict.fromkeys(kind.group for kind in kinds if not kind.custom))
    others = {kind.group: _CUSTOM_PRIORITY for kind in kinds if kind.group not in own}
    for remote in remotes:
        if remote.group not in own:
            others[remote.group] = max(others.get(remote.group, 0), remote.priority)
    groups: dict[str, Versions] = {}
    for group in [*own, *sorted(others, key=lambda group: (-others[group], group))]:
        rows = [kind for kind in kinds if kind.group == group]
        rows.sort(key=lambda kind: (_priority(kind.version), kind.plural))
        versions: Versions = {
            v: list(found) for v, found in groupby(rows, lambda kind: kind.version)
        }
        versions |= {each.version: each for each in remotes if each.group == group}
        groups[group] = dict(sorted(versions.items(), key=lambda item: _priority(item[0])))
    return groups


def _priority(version: str) -> tuple[int, int, int, str]:
    """Stable before beta before alpha, newer before older; names of another form last."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (_NO_STAGE, 0, 0, version)
    return (_STAGES[match[2]], -int(match[1]), -int(match[3] or 0), version)


def _form(accept: str, *, may_aggregate: bool) -> str:
    """The aggregated version that the client likes best, or "" for a legacy document."""
    for clause in accept.split(",") if accept else ("*/*",):
        media, *parameters = (part.strip() for part in clause.split(";"))
        values = dict(p.split("=", 1) for p in parameters if "=" in p)
        if media not in _ANY_JSON and media not in _MEDIA_TYPES:
            continue
        if "as" not in values:
            return ""
        aggregated = (values.get("g"), values["as"]) == (
            "apidiscovery.k8s.io",
            "APIGroupDiscoveryList",
        )
        if may_aggregate and aggregated and values.get("v") == "v2":
            return values["v"]
    raise status.not_acceptable(_MEDIA_TYPES)


def _api_versions(host: str) -> Obj:
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def _legacy(groups: Mapping[str, Versions]) -> dict[str, Obj]:
    documents: dict[str, Obj] = {}
    listed = [_group(group, versions) for group, versions in groups.items() if group]
    documents["/apis"] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
    for group in listed:
        head = {"kind": "APIGroup", "apiVersion": "v1"}
        documents[f"/apis/{group['name']}"] = head | group
    for group_name, versions in groups.items():
        for version, kinds in versions.items():
            # Another server's list is asked for there.
            if not isinstance(kinds, Remote):
                documents[_version_path(group_name, version)] = _resource_list(kinds)
    return documents


def _version_path(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _group(group: str, versions: Iterable[str]) -> Obj:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(kinds: list[Kind]) -> Obj:
    api_version = kinds[0].api_version
    head: Obj = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version}
    if not kinds[0].group:
        del head["apiVersion"]  # the core group's own quirk
    rows = [row for kind in kinds for row in _resource_rows(kind)]
    return head | {"resources": rows}


def _resource_rows(kind: Kind) -> list[Obj]:
    row: Obj = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
    }
    row |= _names(kind)
    if not kind.virtual:
        row["storageVersionHash"] = _storage_version_hash(kind)
    return [row, *(_subresource_row(kind, sub) for sub in _subresources(kind))]


# Kept in etcd in a version that is not served any more.
_HASHED_AS = {
    "customresourcedefinitions.apiextensions.k8s.io": "v1beta1",
    "volumeattributesclasses.storage.k8s.io": "v1beta1",
}


def _storage_version_hash(kind: Kind) -> str:
    """Clients may tell by it that what they keep of a resource is stored in another version now."""
    group = kind.group if kind.storage_group is None else kind.storage_group
    version = _HASHED_AS.get(kind.resource, kind.storage_version)
    stored = f"{group}/{version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _subresource_row(kind: Kind, sub: Subresource) -> Obj:
    row: Obj = {
        "name": f"{kind.plural}/{sub.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
    }
    if _foreign(kind, sub):
        row |= {"group": sub.group, "version": sub.version} if sub.group else {}
    return row | {"kind": sub.kind, "verbs": sub.verbs}


def _subresources(kind: Kind) -> list[Subresource]:
    if kind.custom:
        return list(kind.subresources)
    return sorted(kind.subresources, key=lambda sub: sub.name)


def _foreign(kind: Kind, sub: Subresource) -> bool:
    return (sub.group, sub.version) != (kind.group, kind.version)


def _names(kind: Kind) -> Obj:
    names: Obj = {}
    if kind.short_names:
        names["shortNames"] = kind.short_names
    if kind.categories:
        names["categories"] = kind.categories
    return names


def _aggregated_list(items: list[Obj], version: str) -> Obj:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _aggregated_group(group: str, versions: Versions) -> Obj:
    listed = [
        {
            "version": version,
            "resources": _aggregated_resources(kinds),
            "freshness": _freshness(kinds),
        }
        for version, kinds in versions.items()
    ]
    return {"metadata": {"name": group} if group else {}, "versions": listed}


def _freshness(kinds: list[Kind] | Remote) -> str:
    """Clients do not trust what a server said that does not answer now."""
    return "Stale" if isinstance(kinds, Remote) and not kinds.is_available else "Current"


def _aggregated_resources(kinds: list[Kind] | Remote) -> list[Obj]:
    if isinstance(kinds, Remote):
        return remote_resources(kinds)
    return [_aggregated_resource(kind) for kind in kinds]


def _aggregated_resource(kind: Kind) -> Obj:
    row: Obj = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    }
    row |= _names(kind)
    if kind.subresources:
        row["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _response_kind(
                    sub.kind, *((sub.group, sub.version) if _foreign(kind, sub) else ("", ""))
                ),
                "verbs": sub.verbs,
            }
            for sub in _subresources(kind)
        ]
    return row


def _response_kind(kind: str, group: str = "", version: str = "") -> Obj:
    """Group and version only where they differ from those of the document."""
    return {"group": group, "version": version, "kind": kind}
