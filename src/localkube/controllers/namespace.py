"""Deletes what is in a terminating namespace, then removes the namespace's finalizer."""

import contextlib
from collections import Counter
from typing import NamedTuple

from kubeclient.errors import Conflict, NotFound, Refused
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import NAMESPACES, Resource
from localkube.controllers.api_resources import namespaced_resources
from localkube.controllers.pods import stamp
from localkube.controllers.run import Context, Controller, Watch

_LOOK_AGAIN_S = 0.5
_BACKGROUND: Obj = {"propagationPolicy": "Background"}

_CONTENT, _FINALIZERS = "NamespaceContentRemaining", "NamespaceFinalizersRemaining"
_DISCOVERY = "NamespaceDeletionDiscoveryFailure"
# Reason and message of each condition while there is no problem.
_ALL_WELL = {
    _DISCOVERY: (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    _CONTENT: ("ContentRemoved", "All content successfully removed"),
    _FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class Left(NamedTuple):
    """The content that is not deleted yet."""

    objects: Counter[str]  # by resource
    finalizers: Counter[str]  # by finalizer, how many objects have it
    unanswered: tuple[str, ...] = ()  # group versions whose API server does not say what there is


async def reconcile(key: Key, context: Context) -> float | None:
    namespace = context.of(NAMESPACES).get(key[1])
    if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
        return None
    left = await _emptied(context, key[1])
    if left.objects or left.unanswered:
        await _write_conditions(context, namespace, left)
        return _LOOK_AGAIN_S
    await _finalize(context, namespace)
    return None


async def _emptied(context: Context, namespace: str) -> Left:
    """Deletes the pods, and once they are gone all else: they may need it to end in order, and
    what protects them has to hold as long as they run."""
    resources, unanswered = await namespaced_resources(context.kube)
    left = Left(Counter(), Counter(), tuple(unanswered))
    pods = [each for each in resources if (each.group, each.plural) == ("", "pods")]
    for some in (pods, [each for each in resources if each not in pods]):
        for resource in some:
            for obj in await _empty(context, resource, namespace):
                left.objects[f"{resource.plural}.{resource.group}"] += 1
                left.finalizers.update(obj["metadata"].get("finalizers") or ())
        if left.objects:
            break
    return left


async def _empty(context: Context, resource: Resource, namespace: str) -> list[Obj]:
    """Deletes all of one kind; returns the metadata of those that are still there."""
    listing = await context.kube.list(resource, namespace, query={"limit": "1"})
    if not listing.items:
        return []
    await context.kube.delete(resource, "", namespace, options=_BACKGROUND)
    return (await context.kube.list(resource, namespace, metadata_only=True)).items


async def _write_conditions(context: Context, namespace: Obj, left: Left) -> None:
    known = {c["type"]: c for c in namespace.get("status", {}).get("conditions") or ()}
    wanted = conditions(left, known, stamp(context.now()))
    if wanted == list(known.values()):
        return
    path = NAMESPACES.path(name=namespace["metadata"]["name"], subresource="status")
    with contextlib.suppress(NotFound, Conflict):  # the namespace has changed meanwhile
        await context.kube.patch(path, {"status": {"conditions": wanted}})


def conditions(left: Left, known: dict[str, Obj], now: str) -> list[Obj]:
    troubles = {}
    if left.unanswered:
        listed = ", ".join(sorted(left.unanswered))
        text = f"Discovery failed for some groups, their API servers do not answer: {listed}"
        troubles[_DISCOVERY] = ("DiscoveryFailed", text)
    if left.objects:
        listed = ", ".join(
            sorted(f"{name} has {count} resource instances" for name, count in left.objects.items())
        )
        troubles[_CONTENT] = ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
    if left.finalizers:
        listed = ", ".join(
            sorted(
                f"{name} in {count} resource instances" for name, count in left.finalizers.items()
            )
        )
        text = f"Some content in the namespace has finalizers remaining: {listed}"
        troubles[_FINALIZERS] = ("SomeFinalizersRemain", text)
    made = []
    for kind, well in _ALL_WELL.items():
        reason, message = troubles.get(kind, well)
        status = "True" if kind in troubles else "False"
        before = known.get(kind, {})
        same = (before.get("status"), before.get("reason")) == (status, reason)
        since = before.get("lastTransitionTime") if same else None
        made.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since or now,
            }
        )
    return made


async def _finalize(context: Context, emptied: Obj) -> None:
    try:
        # Not from the mirror: it may lack our last conditions, and the update would conflict.
        namespace = await context.kube.get(NAMESPACES, emptied["metadata"]["name"])
        if namespace["metadata"]["uid"] != emptied["metadata"]["uid"]:
            return  # a later one of the name, which nobody has emptied
        finalizers = namespace["spec"].get("finalizers") or []
        namespace["spec"]["finalizers"] = [f for f in finalizers if f != "kubernetes"]
        await context.kube.update(NAMESPACES, namespace, "finalize")
    except NotFound:
        pass
    except Refused as error:
        if error.code != 409:
            raise


CONTROLLER = Controller("namespace-controller", (Watch(NAMESPACES),), reconcile)
