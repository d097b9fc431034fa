"""Stands for the rest of the API server: decodes, defaults, keeps status apart, stores."""

import functools
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.kinds import Kind, builtin_kinds
from localkube.apiserver.patch.json_patch import apply_json_patch
from localkube.apiserver.patch.managed_fields import (
    Writer,
    manager_name,
    track_create,
    track_update,
)
from localkube.apiserver.patch.merge_patch import apply_merge_patch
from localkube.apiserver.patch.server_side_apply import apply, settle_times
from localkube.apiserver.patch.strategic_merge import apply_strategic
from localkube.apiserver.schema.load import schema_of

Json = Any
NOW = "2026-01-01T00:00:00Z"


@functools.cache
def kinds() -> dict[tuple[str, str, str], Kind]:
    return {(kind.group, kind.version, kind.plural): kind for kind in builtin_kinds()}


class Desk:
    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Json] = {}

    def handle(self, request: Json) -> Json:
        """The written object. Raises ApiError."""
        kind, name, subresource = target(request["path"])
        query = {k: v[0] for k, v in parse_qs(urlsplit(request["path"]).query).items()}
        agent = request["headers"].get("User-Agent", "")
        writer = Writer(manager_name(query.get("fieldManager", ""), agent), NOW, subresource)
        body = request["body"]
        place = kind.plural, name or body["metadata"]["name"]
        live = self._objects.get(place)
        media = request["headers"].get("Content-Type", "")
        if media == "application/apply-patch+yaml":
            new = applied(live, body, writer, kind, query.get("force") == "true")
        else:
            new = written(live, body, writer, kind, media)
        if live is not None:
            settle_times(live, new)
        self._objects[place] = new
        return new


def target(path: str) -> tuple[Kind, str, str]:
    """Raises KeyError for what this desk does not do."""
    parts = urlsplit(path).path.strip("/").split("/")
    group, version, *rest = parts[1:] if parts[0] == "apis" else ["", *parts[1:]]
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    plural, name, subresource, *_ = [*rest, "", ""]
    if subresource not in ("", "status", "scale"):
        raise KeyError(subresource)
    return kinds()[group, version, plural], name, subresource


def applied(live: Json, body: Json, writer: Writer, kind: Kind, force: bool) -> Json:
    config = yaml.safe_load(body) if isinstance(body, str) else body
    schema = schema_of(kind.group, kind.version, kind.kind)
    new = apply(live, config, writer, kind, schema, force=force)
    return finished(new, live, kind, writer.subresource)


def written(live: Json, body: Json, writer: Writer, kind: Kind, media: str) -> Json:
    schema = schema_of(kind.group, kind.version, kind.kind)
    if writer.subresource == "scale":
        new = {**live, "spec": {**live["spec"], "replicas": body["spec"]["replicas"]}}
    elif "patch" in media:
        sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        if media == "application/json-patch+json":
            new = apply_json_patch(live, sent)
        elif media == "application/merge-patch+json":
            new = apply_merge_patch(live, sent)
        else:
            new = apply_strategic(live, sent, schema)
    else:
        new = body
    new = finished(new, live, kind, writer.subresource)
    if live is None:
        track_create(new, writer, kind, schema)
    else:
        track_update(live, new, writer, kind, schema)
    return new


def finished(new: Json, live: Json, kind: Kind, subresource: str) -> Json:
    """What the server does to an object before it looks at who owns what."""
    new = {"apiVersion": kind.api_version, "kind": kind.kind, **without_nulls(new)}
    if live is not None and kind.has_status:
        if subresource == "status":
            new = {**live, "status": new.get("status", {}), "metadata": new["metadata"]}
        else:
            new = {**new, "status": live.get("status", {})}
    new = json.loads(json.dumps(new))
    apply_defaults(new, kind)
    return new


def without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
