"""Binds each PersistentVolumeClaim of the local storage class to a new directory, at once.

The directory lies in the cluster's data directory. It is deleted with the claim, or with the volume
if the reclaim policy is Retain.
"""

import asyncio
import contextlib
import re
from pathlib import Path

from kubeclient.errors import AlreadyExists, NotFound
from kubeclient.events import NORMAL
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from localkube.controllers.pods import is_finished
from localkube.controllers.run import Context, Controller, Watch
from localkube.names import DEFAULT
from localkube.removal import remove_tree

CLASS_NAME = "local-directory"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_NAME = re.compile(r"pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_LOOK_AGAIN_S = 1.0


def storage_class(provisioner: str = DEFAULT.provisioner) -> Obj:
    """The cluster's default StorageClass."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": CLASS_NAME,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": provisioner,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def controller(directory: Path, provisioner: str = DEFAULT.provisioner) -> Controller:
    async def reconcile(key: Key, context: Context) -> float | None:
        claim = context.of(VOLUME_CLAIMS).get(key[1], key[0])
        if claim is None or claim.get("status", {}).get("phase") == "Bound":
            return None
        chosen = context.of(STORAGE_CLASSES).get(claim["spec"].get("storageClassName") or "")
        if chosen is None or chosen.get("provisioner") != provisioner:
            return None
        await _bind(claim, chosen, directory, context)
        return None

    return Controller(
        "persistentvolume-controller",
        (Watch(VOLUME_CLAIMS),),
        reconcile,
        reads=(STORAGE_CLASSES, VOLUMES),
        workers=1,
    )


async def _bind(claim: Obj, chosen: Obj, directory: Path, context: Context) -> None:
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    capacity = spec["resources"]["requests"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": {_PROVISIONED_BY: chosen["provisioner"]},
        },
        "spec": {
            "capacity": capacity,
            "accessModes": spec["accessModes"],
            "persistentVolumeReclaimPolicy": chosen.get("reclaimPolicy", "Delete"),
            "storageClassName": chosen["metadata"]["name"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "hostPath": {"path": str(directory / name), "type": "DirectoryOrCreate"},
        },
    }
    with contextlib.suppress(AlreadyExists):
        await context.kube.create(VOLUMES, volume)
    bound = {"status": {"phase": "Bound"}}
    await context.kube.patch(VOLUMES.path(name=name, subresource="status"), bound)
    path = VOLUME_CLAIMS.path(metadata["namespace"], metadata["name"])
    notes = {"pv.kubernetes.io/bind-completed": "yes"}
    change = {"metadata": {"annotations": notes}, "spec": {"volumeName": name}}
    await context.kube.patch(path, change)
    status = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": capacity}
    await context.kube.patch(f"{path}/status", {"status": status})
    text = f"Successfully provisioned volume {name}"
    context.events.event(claim, NORMAL, "ProvisioningSucceeded", text)


async def _has_claim(ref: Obj, context: Context) -> bool:
    """Files are deleted if this is False, so the API server is asked: the mirrors are not in
    step."""
    claim = context.of(VOLUME_CLAIMS).get(ref["name"], ref["namespace"])
    if claim is not None and claim["metadata"]["uid"] == ref["uid"]:
        return True
    try:
        claim = await context.kube.get(VOLUME_CLAIMS, ref["name"], ref["namespace"])
    except NotFound:
        return False
    return bool(claim["metadata"]["uid"] == ref["uid"])


def reclaimer(directory: Path, provisioner: str = DEFAULT.provisioner) -> Controller:
    """Releases volumes whose claims are gone, and deletes them if their policy says so."""

    async def reconcile(key: Key, context: Context) -> float | None:
        volume = context.of(VOLUMES).get(key[1])
        if volume is None or "claimRef" not in volume["spec"]:
            return None
        ref = volume["spec"]["claimRef"]
        # Without a uid, the volume waits for a claim of that name.
        if not all(map(ref.get, ("uid", "name", "namespace"))) or await _has_claim(ref, context):
            return None
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            if _is_used(ref, context):
                return _LOOK_AGAIN_S
            if _is_from(volume, provisioner):
                await _delete_files(volume, directory)
            await context.delete(VOLUMES, volume)
        elif volume.get("status", {}).get("phase") != "Released":
            path = VOLUMES.path(name=key[1], subresource="status")
            with contextlib.suppress(NotFound):
                await context.kube.patch(path, {"status": {"phase": "Released"}})
        return None

    watches = (
        Watch(VOLUMES),
        Watch(VOLUME_CLAIMS, lambda claim, _: [("", f"pvc-{claim['metadata']['uid']}")]),
    )
    return Controller("persistentvolume-reclaim", watches, reconcile, reads=(PODS,), workers=1)


def _is_used(claim: Obj, context: Context) -> bool:
    """Whether a pod that has not finished mounts the claim: it may have files open."""
    return any(
        (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim.get("name")
        for pod in context.of(PODS)
        if pod["metadata"]["namespace"] == claim.get("namespace") and not is_finished(pod)
        for volume in pod["spec"].get("volumes") or ()
    )


def _is_from(volume: Obj, provisioner: str) -> bool:
    annotations = volume["metadata"].get("annotations") or {}
    return bool(annotations.get(_PROVISIONED_BY) == provisioner)


async def _delete_files(volume: Obj, directory: Path) -> None:
    """Called before the object is deleted: if we are interrupted, the object is still there, and
    the next reconcile deletes the rest."""
    name = volume["metadata"]["name"]
    if _NAME.fullmatch(name):
        await asyncio.to_thread(remove_tree, directory / name)
