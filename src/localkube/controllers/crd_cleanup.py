"""Deletes the objects of a terminating CRD, then removes the finalizer that kept it."""

import contextlib

from kubeclient.errors import NotFound
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import CRDS, Resource
from localkube.controllers.pods import stamp
from localkube.controllers.run import Context, Controller, Watch

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_LOOK_AGAIN_S = 0.5


async def reconcile(key: Key, context: Context) -> float | None:
    crd = context.of(CRDS).get(key[1])
    if crd is None or "deletionTimestamp" not in crd["metadata"]:
        return None
    finalizers = crd["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        return None
    crd = await _set_terminating(crd, context)
    resource = _resource(crd)
    if resource is not None:
        with contextlib.suppress(NotFound):
            left = (await context.kube.list(resource)).items
            for obj in left:
                if "deletionTimestamp" not in obj["metadata"]:
                    await context.delete(resource, obj)
            if (await context.kube.list(resource)).items:
                return _LOOK_AGAIN_S  # they have finalizers of their own
    kept = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
    with contextlib.suppress(NotFound):
        # The patch replaces the whole list: what was added meanwhile must cause a conflict.
        basis = {"resourceVersion": crd["metadata"]["resourceVersion"]}
        change = {"metadata": {**basis, "finalizers": kept}}
        await context.kube.patch(CRDS.path(name=key[1]), change, metadata_only=True)
    return None


async def _set_terminating(crd: Obj, context: Context) -> Obj:
    known = crd.get("status", {}).get("conditions") or []
    if any(condition["type"] == "Terminating" for condition in known):
        return crd
    terminating = {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
        "lastTransitionTime": stamp(context.now()),
    }
    path = CRDS.path(name=crd["metadata"]["name"], subresource="status")
    change = {"status": {"conditions": [*known, terminating]}}
    patched = await context.kube.patch(path, change, metadata_only=True)
    return crd | {"metadata": patched["metadata"]}


def _resource(crd: Obj) -> Resource | None:
    spec = crd["spec"]
    # In the version that they are stored in: no conversion webhook, which may be gone, is asked.
    versions = sorted(spec["versions"], key=lambda version: not version.get("storage"))
    served = next((v["name"] for v in versions if v.get("served")), None)
    if served is None:
        return None
    names = spec["names"]
    namespaced = spec["scope"] == "Namespaced"
    return Resource(spec["group"], served, names["plural"], names["kind"], namespaced)


CONTROLLER = Controller("crd-cleanup", (Watch(CRDS),), reconcile, workers=1)
