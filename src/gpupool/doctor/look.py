"""Reads from a cluster all that the checks need. Changes nothing: its pod is a dry run."""

import base64
import datetime
from collections.abc import Awaitable
from typing import TypeVar

from gpupool.contract.names import (
    ADMISSION,
    AGENT_DAEMON_SET,
    LEASE_NAMESPACE,
    RESOURCE_GPU_MEM,
    SCHEDULER_LEASE,
)
from gpupool.doctor.evidence import Evidence, Right
from kubeclient.client import APPLY_PATCH, Kube
from kubeclient.errors import NotFound, Refused
from kubeclient.objects import Obj
from kubeclient.resources import (
    DAEMON_SETS,
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    RUNTIME_CLASSES,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)

_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_NODE_LEASES = "kube-node-lease"  # the namespace
# Rights without which a program cannot work, by service account: verb, resource[.group][=name].
_NEEDED = {
    "gpupool-agent": (
        "patch nodes",
        "patch nodes/status",
        "list pods",
        "create events",
        "list runtimeclasses.node.k8s.io",
    ),
    "gpupool-scheduler": (
        "watch nodes",
        "watch pods",
        "create pods/binding",
        "patch pods/status",
        "watch persistentvolumeclaims",
        "watch storageclasses.storage.k8s.io",
        "watch csinodes.storage.k8s.io",
        "watch poddisruptionbudgets.policy",
        "watch resourcequotas",
    ),
    ADMISSION: (
        "watch nodes",
        f"patch mutatingwebhookconfigurations.admissionregistration.k8s.io={ADMISSION}",
        f"patch validatingwebhookconfigurations.admissionregistration.k8s.io={ADMISSION}",
    ),
}
Found = TypeVar("Found")


async def look(kube: Kube, namespace: str, now: datetime.datetime) -> Evidence:
    """`namespace` is that of the installation. Raises KubeError if there is no answer."""
    unseen: list[str] = []

    async def seen(asking: Awaitable[Found], otherwise: Found) -> Found:
        try:
            return await asking
        except NotFound:
            return otherwise
        except Refused as refused:
            # Noted, not raised: users without all rights still get the checks that they may make.
            unseen.append(str(refused))
            return otherwise

    lease = await seen(kube.get(LEASES, SCHEDULER_LEASE, LEASE_NAMESPACE), {})
    webhooks = [
        await seen(kube.get(resource, ADMISSION), {})
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
    ]
    secret = await seen(kube.get(SECRETS, ADMISSION, namespace), {})
    trial, trial_error = await _trial(kube)
    return Evidence(
        now,
        str((await kube.page("/version")).get("gitVersion", "")),
        tuple(await seen(_listed(kube, NODES), [])),
        tuple(await seen(_listed(kube, PODS), [])),
        lease,
        tuple(webhook for webhook in webhooks if webhook),
        base64.b64decode((secret.get("data") or {}).get("ca.crt", "")),
        trial,
        trial_error,
        tuple(await seen(_rights(kube, namespace), [])),
        await seen(kube.get(DAEMON_SETS, AGENT_DAEMON_SET, namespace), {}),
        tuple(await seen(_listed(kube, RUNTIME_CLASSES), [])),
        tuple(await seen(_listed(kube, LEASES, _NODE_LEASES), [])),
        tuple(unseen),
    )


async def _listed(kube: Kube, resource: Resource, namespace: str = "") -> list[Obj]:
    return (await kube.list(resource, namespace)).items


async def _trial(kube: Kube) -> tuple[Obj | None, str]:
    """The pod that a request for a share of a card would become, or why it would be refused.

    A dry run passes admission like any other request, so the webhook is really called.
    """
    name = "gpupool-doctor"
    container = {"name": "main", "image": "none", "resources": {"limits": {RESOURCE_GPU_MEM: "1"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }
    try:
        made = await kube.patch(
            PODS.path("default", name),
            pod,
            content_type=APPLY_PATCH,
            query={"dryRun": "All", "fieldManager": name, "force": "true"},
        )
    except Refused as refused:
        return None, str(refused)
    return made, ""


async def _rights(kube: Kube, namespace: str) -> list[Right]:
    return [
        Right(account, verb, resource, await _may(kube, namespace, account, verb, resource))
        for account, needed in _NEEDED.items()
        for verb, resource in (each.split() for each in needed)
    ]


async def _may(kube: Kube, namespace: str, account: str, verb: str, resource: str) -> bool:
    resource, _, name = resource.partition("=")
    plural, _, group = resource.partition(".")
    plural, _, subresource = plural.partition("/")
    asked = {
        "verb": verb,
        "group": group,
        "resource": plural,
        "subresource": subresource,
        "name": name,
    }
    review = {
        "apiVersion": _REVIEWS.api_version,
        "kind": _REVIEWS.kind,
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{account}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"],
            "resourceAttributes": {key: text for key, text in asked.items() if text},
        },
    }
    answer = await kube.create(_REVIEWS, review)
    return bool(answer["status"].get("allowed"))
