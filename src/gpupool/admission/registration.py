"""The webhook configurations: which writes the API server asks us about."""

import base64
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from gpupool.admission.conditions import (
    asks_for_gpus,
    asks_in_any_words,
    nearly_ours,
    sees_unrequested_cards,
)
from gpupool.admission.foreign.systems import System
from gpupool.admission.forgery import PROTECTED_GROUPS, PROTECTED_KEYS
from gpupool.contract.device_annotations import DEVICE_GROUPS
from gpupool.contract.names import ADMISSION, LABEL_SEE_ALL_CARDS, PREFIX_NVIDIA_CONTAINER
from kubeclient.client import APPLY_PATCH, Kube
from kubeclient.objects import Obj
from kubeclient.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource

POD_PATH = "/pods"
ALLOCATION_PATH = "/allocations"
PATHS_PATH = "/paths"
HINTS_PATH = "/hints"
VISIBLE_PATH = "/visible"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"  # a label that every namespace has
_TIMEOUT_S = 10
_HINTS_TIMEOUT_S = 2


@dataclass(frozen=True, slots=True)
class Reach:
    """How the API server reaches us: by URL, or by a service of its cluster."""

    url: str = ""  # https://127.0.0.1:8443
    service: str = ""
    namespace: str = ""
    port: int = 443


async def register(
    kube: Kube,
    reach: Reach,
    bundle_pem: bytes,
    schedulers: Iterable[str],
    systems: Set[System] = frozenset(),
    hide_from: Sequence[str] | None = None,
) -> None:
    """Writes the webhooks into their configurations. The chart creates these empty, so that
    admission needs no right to create any; in a local cluster the first write creates them.

    `systems`: those whose words we understand. Of the pods of all others the API server does not
    even ask us, so that they do not depend on our webhook. `hide_from`: pods see no cards that they
    have not asked for, except in these namespaces; None: nothing is hidden."""
    changing = [_pods(reach, bundle_pem, systems)]
    if hide_from is not None:
        changing.append(_visible(reach, bundle_pem, hide_from))
    for resource, webhooks in (
        (MUTATING_WEBHOOKS, changing),
        # Validating webhooks run after all mutating ones: annotations that another webhook adds are
        # checked as well.
        (
            VALIDATING_WEBHOOKS,
            [
                _allocations(reach, bundle_pem, schedulers),
                _paths(reach, bundle_pem),
                _hints(reach, bundle_pem, systems),
            ],
        ),
    ):
        await kube.patch(
            resource.path(name=ADMISSION),
            _configuration(resource, webhooks),
            content_type=APPLY_PATCH,
            # All replicas apply as one manager. Force takes back fields that somebody has edited.
            query={"fieldManager": ADMISSION, "force": "true"},
        )


def _configuration(resource: Resource, webhooks: list[Obj]) -> Obj:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": ADMISSION},
        "webhooks": webhooks,
    }


def _pods(reach: Reach, bundle_pem: bytes, systems: Set[System]) -> Obj:
    return {
        **_webhook("pods.gpupool.io", reach, POD_PATH, bundle_pem),
        # Environment and volumes of a pod cannot be changed after its creation.
        "rules": [_rule(["CREATE"], ["pods"])],
        # The API server asks only about pods with GPUs. So while the webhook is down, all other
        # pods can be created as usual.
        "matchConditions": [{"name": "asks-for-gpus", "expression": asks_in_any_words(systems)}],
        "reinvocationPolicy": "Never",
    }


def _visible(reach: Reach, bundle_pem: bytes, namespaces: Sequence[str]) -> Obj:
    """Only of pods that set the variable and ask for no GPU: while the webhook is down, those wait
    and no others."""
    return {
        **_webhook("visible.gpupool.io", reach, VISIBLE_PATH, bundle_pem),
        "rules": [
            _rule(["CREATE"], ["pods"]),
            _rule(["UPDATE"], ["pods/ephemeralcontainers"]),
        ],
        "matchConditions": [
            {"name": "sees-unrequested-cards", "expression": sees_unrequested_cards()}
        ],
        "namespaceSelector": {
            "matchExpressions": [
                {"key": _NAMESPACE_NAME, "operator": "NotIn", "values": list(namespaces)},
                {"key": LABEL_SEE_ALL_CARDS, "operator": "NotIn", "values": ["true"]},
            ]
        },
        "reinvocationPolicy": "IfNeeded",
    }


def _allocations(reach: Reach, bundle_pem: bytes, schedulers: Iterable[str]) -> Obj:
    listed = ", ".join(f"'{user}'" for user in sorted(schedulers))
    return {
        **_webhook("allocations.gpupool.io", reach, ALLOCATION_PATH, bundle_pem),
        "rules": [
            # A write to pods/status can change annotations, too.
            _rule(["CREATE", "UPDATE"], ["pods", "pods/status", "pods/ephemeralcontainers"]),
            _rule(["CREATE"], ["pods/binding", "bindings"]),
        ],
        "matchConditions": [
            {
                "name": "not-by-the-scheduler",
                "expression": f"!(request.userInfo.username in [{listed}])",
            },
            # Or devices by annotations of other programs, with or without a request for GPUs.
            {"name": "has-an-allocation", "expression": _has_allocation()},
            # Kubelets write the status of their pods all the time without changing annotations;
            # the webhook is not called for those writes.
            {"name": "changes-annotations", "expression": _CHANGES_ANNOTATIONS},
        ],
    }


def _paths(reach: Reach, bundle_pem: bytes) -> Obj:
    return {
        **_webhook("paths.gpupool.io", reach, PATHS_PATH, bundle_pem),
        "rules": [
            # After all mutating webhooks: some mount volumes where an annotation of the pod says.
            _rule(["CREATE"], ["pods"]),
            # No other write to a pod changes what its containers mount.
            _rule(["UPDATE"], ["pods/ephemeralcontainers"]),
        ],
        "matchConditions": [{"name": "asks-for-gpus", "expression": asks_for_gpus()}],
    }


def _hints(reach: Reach, bundle_pem: bytes, systems: Set[System]) -> Obj:
    return {
        **_webhook("hints.gpupool.io", reach, HINTS_PATH, bundle_pem),
        # Workloads, too: a warning about a pod that a controller creates is read by nobody.
        "rules": [
            _rule(["CREATE", "UPDATE"], ["deployments", "statefulsets", "daemonsets"], "apps"),
            _rule(["CREATE", "UPDATE"], ["jobs", "cronjobs"], "batch"),
            _rule(["CREATE"], ["pods"]),
        ],
        "matchConditions": [
            # What a controller creates, its owner was warned about.
            {"name": "has-no-owner", "expression": "!has(object.metadata.ownerReferences)"},
            {"name": "names-that-are-nearly-ours", "expression": nearly_ours(systems)},
        ],
        # Only words: nothing may depend on them.
        "failurePolicy": "Ignore",
        "timeoutSeconds": _HINTS_TIMEOUT_S,
    }


def _webhook(name: str, reach: Reach, path: str, bundle_pem: bytes) -> Obj:
    config: Obj = {"caBundle": base64.b64encode(bundle_pem).decode()}
    if reach.url:
        config["url"] = reach.url + path
    else:
        config["service"] = {
            "name": reach.service,
            "namespace": reach.namespace,
            "path": path,
            "port": reach.port,
        }
    return {
        "name": name,
        "clientConfig": config,
        "admissionReviewVersions": ["v1"],
        # If a webhook may have side effects, the API server refuses dry runs, which
        # `gpupool doctor` and `kubectl --dry-run=server` need.
        "sideEffects": "None",
        # With "Ignore", GPU pods would start without a card, and forged allocations would pass,
        # whenever the webhook is down.
        "failurePolicy": "Fail",
        "timeoutSeconds": _TIMEOUT_S,
    }


def _rule(operations: list[str], resources: list[str], group: str = "") -> Obj:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": operations,
        "resources": resources,
        "scope": "Namespaced",
    }


def _has_allocation() -> str:
    keys = ", ".join(f"'{key}'" for key in (*PROTECTED_KEYS, *DEVICE_GROUPS))
    prefixes = [f"{group}/" for group in (*PROTECTED_GROUPS, *DEVICE_GROUPS)]
    groups = " || ".join(
        f"k.startsWith('{prefix}')" for prefix in (*prefixes, PREFIX_NVIDIA_CONTAINER)
    )
    return " || ".join(
        f"({given}has({which}.metadata.annotations) && "
        f"{which}.metadata.annotations.exists(k, k in [{keys}] || {groups}))"
        # The old object, too: to remove an allocation is a forgery as well. It is null when a pod
        # is created.
        for which, given in (("object", ""), ("oldObject", "oldObject != null && "))
    )


_CHANGES_ANNOTATIONS = (
    "oldObject == null || "
    "has(object.metadata.annotations) != has(oldObject.metadata.annotations) || "
    "(has(object.metadata.annotations) && "
    "object.metadata.annotations != oldObject.metadata.annotations)"
)
