"""Namespaces on their way out: delete what is in them, then let them go."""

import contextlib

from gpupool.contract.objects import Obj
from gpupool.kube.errors import Conflict, NotFound, Refused
from gpupool.kube.mirror import Key
from gpupool.kube.resources import NAMESPACES, Resource
from gpupool.localcluster.controllers.api_resources import namespaced_resources
from gpupool.localcluster.controllers.run import Context, Controller, Watch

_LOOK_AGAIN_S = 0.5
_BACKGROUND: Obj = {"propagationPolicy": "Background"}


async def reconcile(key: Key, context: Context) -> float | None:
    namespace = context.of(NAMESPACES).get(key[1])
    if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
        return None
    left: dict[str, int] = {}
    for resource in await namespaced_resources(context.kube):
        remaining = await _empty(context, resource, key[1])
        if remaining:
            left[resource.plural] = remaining
    if left:
        await _say_what_is_left(context, namespace, left)
        return _LOOK_AGAIN_S
    await _finalize(context, key[1])
    return None


async def _empty(context: Context, resource: Resource, namespace: str) -> int:
    """Deletes all of one kind; says how many are still there."""
    listing = await context.kube.list(resource, namespace, query={"limit": "1"})
    if not listing.items:
        return 0
    await context.kube.delete(resource, "", namespace, options=_BACKGROUND)
    return len((await context.kube.list(resource, namespace)).items)


async def _say_what_is_left(context: Context, namespace: Obj, left: dict[str, int]) -> None:
    listed = ", ".join(f"{name}. has {count} resource instances" for name, count in left.items())
    stamp = context.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": "NamespaceContentRemaining",
        "status": "True",
        "reason": "SomeResourcesRemain",
        "message": f"Some resources are remaining: {listed}",
        "lastTransitionTime": stamp,
    }
    known = namespace.get("status", {}).get("conditions") or []
    if any(c.get("message") == condition["message"] for c in known):
        return
    path = NAMESPACES.path(name=namespace["metadata"]["name"], subresource="status")
    with contextlib.suppress(NotFound, Conflict):  # it has moved on meanwhile
        await context.kube.patch(path, {"status": {"conditions": [condition]}})


async def _finalize(context: Context, name: str) -> None:
    try:
        namespace = await context.kube.get(NAMESPACES, name)
        finalizers = namespace["spec"].get("finalizers") or []
        namespace["spec"]["finalizers"] = [f for f in finalizers if f != "kubernetes"]
        await context.kube.update(NAMESPACES, namespace, "finalize")
    except NotFound:
        pass
    except Refused as error:
        if error.code != 409:
            raise


CONTROLLER = Controller("namespace-controller", (Watch(NAMESPACES),), reconcile)
