"""What another API server lists as its resources, in the form of aggregated discovery."""

from kubeclient.objects import Obj
from localkube.apiserver.aggregation.registry import Remote


def remote_resources(remote: Remote) -> list[Obj]:
    below: dict[str, list[Obj]] = {}
    for row in remote.resources:
        resource, _, subresource = row["name"].partition("/")
        if subresource:
            below.setdefault(resource, []).append(_subresource(subresource, row, remote))
    return [
        _resource(row, below.get(row["name"], []), remote)
        for row in remote.resources
        if "/" not in row["name"]
    ]


def _resource(row: Obj, subresources: list[Obj], remote: Remote) -> Obj:
    made: Obj = {
        "resource": row["name"],
        "responseKind": _kind(row, remote),
        "scope": "Namespaced" if row["namespaced"] else "Cluster",
        "singularResource": row.get("singularName", ""),
        "verbs": row["verbs"],
    }
    for key in ("shortNames", "categories"):
        if row.get(key):
            made[key] = row[key]
    return made | ({"subresources": subresources} if subresources else {})


def _subresource(name: str, row: Obj, remote: Remote) -> Obj:
    return {"subresource": name, "responseKind": _kind(row, remote), "verbs": row["verbs"]}


def _kind(row: Obj, remote: Remote) -> Obj:
    """Other servers' kinds are named in full."""
    return {
        "group": row.get("group") or remote.group,
        "version": row.get("version") or remote.version,
        "kind": row["kind"],
    }
