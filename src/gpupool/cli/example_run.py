"""Applies the manifests of an example to a cluster, and follows its pods."""

import asyncio
from typing import NamedTuple

from gpupool.cli.progress import Progress
from kubeclient.client import APPLY_PATCH, Kube
from kubeclient.objects import Obj
from kubeclient.resources import DEPLOYMENTS, PODS, SERVICES, STATEFUL_SETS

_PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.1
_NAMESPACE = "default"


class Ran(NamedTuple):
    """What has become of an example."""

    pods: list[Obj]
    has_replaced: bool  # pods of an earlier manifest


async def run(kube: Kube, manifests: list[Obj], told: Progress, *, start_again: bool) -> Ran:
    """Once each pod runs or waits for a node. `start_again`: pods that run already get the program
    that was installed after their start.

    Pods of an earlier manifest go first: two examples have a notebook of the same name."""
    before = set() if start_again else {_uid(pod) for pod in await _pods(kube, manifests)}
    if start_again:
        for pod in await _pods(kube, manifests):
            await kube.delete(PODS, pod["metadata"]["name"], _NAMESPACE)
    for manifest in manifests:
        await _apply(kube, manifest)
    clock = asyncio.get_running_loop().time
    deadline = clock() + _PATIENCE_S
    while True:
        has_old = [await _has_old_pods(kube, manifest) for manifest in manifests]
        pods = await _pods(kube, manifests)
        is_done = bool(pods) and all(_is_ready(pod) or trouble(pod) for pod in pods)
        if any(has_old) and not waiting(pods):  # one that waits may keep the old one for ever
            is_done = False
        if is_done or clock() > deadline:
            return Ran(pods, has_replaced=not before <= {_uid(pod) for pod in pods})
        told.say(f"{sum(map(_is_ready, pods))} of {len(pods)} pods are ready")
        await asyncio.sleep(_LOOK_EVERY_S)


def _uid(pod: Obj) -> str:
    return str(pod["metadata"]["uid"])


async def _has_old_pods(kube: Kube, manifest: Obj) -> bool:
    resources = {each.kind: each for each in (DEPLOYMENTS, STATEFUL_SETS)}
    if manifest["kind"] not in resources:
        return False
    name = manifest["metadata"]["name"]
    found = await kube.get(resources[manifest["kind"]], name, _NAMESPACE)
    status = found.get("status") or {}
    if status.get("observedGeneration", 0) < found["metadata"].get("generation", 0):
        return True
    return bool(status.get("updatedReplicas", 0) < status.get("replicas", 0))


async def links_of(kube: Kube, manifests: list[Obj]) -> list[str]:
    """Where the services of the manifests answer."""
    from gpupool.cli.open import link_when_ready

    names = [each["metadata"]["name"] for each in manifests if each["kind"] == "Service"]
    return [await link_when_ready(kube, name, _NAMESPACE) for name in names]


async def _pods(kube: Kube, manifests: list[Obj]) -> list[Obj]:
    """The pods of the manifests, without those that are ending."""
    listed = (await kube.list(PODS, _NAMESPACE)).items
    staying = [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]
    return [pod for pod in staying if any(_is_of(pod, manifest) for manifest in manifests)]


async def _apply(kube: Kube, manifest: Obj) -> None:
    resources = {each.kind: each for each in (DEPLOYMENTS, PODS, SERVICES, STATEFUL_SETS)}
    resource = resources[manifest["kind"]]
    await kube.patch(
        resource.path(_NAMESPACE, manifest["metadata"]["name"]),
        manifest,
        content_type=APPLY_PATCH,
        query={"fieldManager": "gpupool-example", "force": "true"},
    )


def _is_of(pod: Obj, manifest: Obj) -> bool:
    name = pod["metadata"]["name"]
    if manifest["kind"] == "Pod":
        return bool(name == manifest["metadata"]["name"])
    selector = (manifest["spec"].get("selector") or {}).get("matchLabels") or {}
    labels = pod["metadata"].get("labels") or {}
    return bool(selector) and selector.items() <= labels.items()


def _condition(pod: Obj, kind: str) -> Obj:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind), {})


def _is_ready(pod: Obj) -> bool:
    return _condition(pod, "Ready").get("status") == "True"


def trouble(pod: Obj) -> str:
    """Why the pod waits for a node; empty when it does not wait."""
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("status") != "False":
        return ""
    return str(scheduled.get("message") or "no scheduler has looked at it yet")


def waiting(pods: list[Obj]) -> list[tuple[str, str]]:
    """The pods that wait for a node, and why."""
    return [(pod["metadata"]["name"], trouble(pod)) for pod in pods if trouble(pod)]
