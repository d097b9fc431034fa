"""The resources that the API server serves, from its discovery: CRDs come and go at run time."""

from kubeclient.client import Kube
from kubeclient.errors import NotFound, Refused
from kubeclient.objects import Obj
from kubeclient.resources import Resource

_UNAVAILABLE = 503
_NEEDED = {"list", "delete", "deletecollection"}


async def namespaced_resources(kube: Kube) -> tuple[list[Resource], list[str]]:
    """All namespaced resources that can be deleted, each once; and the group versions of other API
    servers that do not answer, of which nothing is known."""
    found, unanswered = await _served(kube)
    return [resource for resource in found if resource.namespaced], unanswered


async def deletable_resources(kube: Kube) -> list[Resource]:
    """Without those of other API servers that do not answer."""
    return (await _served(kube))[0]


async def _served(kube: Kube) -> tuple[list[Resource], list[str]]:
    found: dict[tuple[str, str], Resource] = {}
    unanswered = []
    for group, version in await _group_versions(kube):
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            document = await kube.page(path)
        except NotFound:  # the last CRD of the group has just been deleted
            continue
        except Refused as error:
            if error.code != _UNAVAILABLE:
                raise
            unanswered.append(f"{group}/{version}")
            continue
        for row in document["resources"]:
            if "/" not in row["name"] and set(row["verbs"]) >= _NEEDED:
                # events.k8s.io serves the core's events a second time.
                stored = ("", "events") if row["name"] == "events" else (group, row["name"])
                found.setdefault(stored, _resource(group, version, row))
    return list(found.values()), unanswered


def _resource(group: str, version: str, row: Obj) -> Resource:
    return Resource(group, version, row["name"], row["kind"], row["namespaced"])


async def _group_versions(kube: Kube) -> list[tuple[str, str]]:
    """The preferred version of each group first. The others count, too: a kind need not be served
    in the version that its group prefers."""
    found = [("", "v1")]
    for group in (await kube.page("/apis"))["groups"]:
        preferred = group["preferredVersion"]["version"]
        others = (each["version"] for each in group["versions"])
        found += [(group["name"], each) for each in dict.fromkeys((preferred, *others))]
    return found
