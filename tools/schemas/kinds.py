"""Rows of kinds.json: what a real server's discovery says, and the little that it does not say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.schemas.metrics import METRICS_RESOURCES


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EVERY = None
# Group, version and the resources of it that are served. Left out, although discovery lists them:
# what has no meaning without the machinery behind it (volume details), and proxying into pods,
# nodes and services.
SERVED: dict[tuple[str, str], frozenset[str] | None] = {
    ("", "v1"): _words(
        "bindings configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims "
        "persistentvolumes pods podtemplates replicationcontrollers resourcequotas secrets "
        "serviceaccounts services"
    ),
    ("apiregistration.k8s.io", "v1"): _EVERY,
    ("apps", "v1"): _EVERY,
    ("events.k8s.io", "v1"): _EVERY,
    ("authentication.k8s.io", "v1"): _EVERY,
    ("authorization.k8s.io", "v1"): _EVERY,
    ("autoscaling", "v2"): _EVERY,
    ("autoscaling", "v1"): _EVERY,
    ("batch", "v1"): _EVERY,
    ("certificates.k8s.io", "v1"): _EVERY,
    ("networking.k8s.io", "v1"): frozenset({"ingressclasses", "ingresses", "networkpolicies"}),
    ("policy", "v1"): _EVERY,
    ("rbac.authorization.k8s.io", "v1"): _EVERY,
    ("storage.k8s.io", "v1"): frozenset(
        {"csidrivers", "csinodes", "storageclasses", "volumeattachments"}
    ),
    ("admissionregistration.k8s.io", "v1"): _words(
        "mutatingwebhookconfigurations validatingadmissionpolicies "
        "validatingadmissionpolicybindings validatingwebhookconfigurations"
    ),
    ("apiextensions.k8s.io", "v1"): _EVERY,
    ("scheduling.k8s.io", "v1"): _EVERY,
    ("coordination.k8s.io", "v1"): _EVERY,
    ("node.k8s.io", "v1"): _EVERY,
    ("discovery.k8s.io", "v1"): _EVERY,
    ("resource.k8s.io", "v1"): _EVERY,
    ("flowcontrol.apiserver.k8s.io", "v1"): _EVERY,
    ("metrics.k8s.io", "v1beta1"): _EVERY,
}
_NOT_OFFERED = frozenset({"proxy"})
_WITH_GENERATION = _words(
    "pods podtemplates replicationcontrollers daemonsets.apps deployments.apps replicasets.apps "
    "statefulsets.apps cronjobs.batch jobs.batch ingressclasses.networking.k8s.io "
    "ingresses.networking.k8s.io networkpolicies.networking.k8s.io poddisruptionbudgets.policy "
    "priorityclasses.scheduling.k8s.io endpointslices.discovery.k8s.io "
    "resourceslices.resource.k8s.io deviceclasses.resource.k8s.io "
    "mutatingwebhookconfigurations.admissionregistration.k8s.io "
    "validatingadmissionpolicies.admissionregistration.k8s.io "
    "validatingadmissionpolicybindings.admissionregistration.k8s.io "
    "validatingwebhookconfigurations.admissionregistration.k8s.io "
    "customresourcedefinitions.apiextensions.k8s.io flowschemas.flowcontrol.apiserver.k8s.io "
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
)
_SELECTABLE = {
    "pods": "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName "
    "spec.hostNetwork status.phase status.podIP status.podIPs status.nominatedNodeName spec.host",
    "nodes": "spec.unschedulable",
    "namespaces": "status.phase",
    "secrets": "type",
    "services": "spec.clusterIP spec.type",
    "replicationcontrollers": "status.replicas",
    "replicasets.apps": "status.replicas",
    "jobs.batch": "status.successful",
    "events": "involvedObject.kind involvedObject.namespace involvedObject.name "
    "involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion "
    "involvedObject.fieldPath reason reportingComponent source type",
    "events.events.k8s.io": "reason regarding.kind regarding.namespace regarding.name "
    "regarding.uid regarding.apiVersion regarding.resourceVersion regarding.fieldPath "
    "reportingController type",
    "certificatesigningrequests.certificates.k8s.io": "spec.signerName",
    "resourceslices.resource.k8s.io": "spec.nodeName spec.driver",
}


def rows(discovery: Path) -> list[dict[str, Any]]:
    documents = json.loads(discovery.read_text())["aggregated"]
    found = {
        (group["metadata"].get("name", ""), version["version"]): version["resources"]
        for document in documents.values()
        for group in document["items"]
        for version in group["versions"]
    }
    found["metrics.k8s.io", "v1beta1"] = METRICS_RESOURCES
    return [
        _row(group, version, resource)
        for (group, version), wanted in SERVED.items()
        for resource in found[group, version]
        if wanted is None or resource["resource"] in wanted
    ]


def _row(group: str, version: str, resource: dict[str, Any]) -> dict[str, Any]:
    qualified = f"{resource['resource']}.{group}".rstrip(".")
    subresources = list(_subresources(group, version, resource))
    row: dict[str, Any] = {
        "group": group,
        "version": version,
        "kind": resource["responseKind"]["kind"],
        "plural": resource["resource"],
        "singular": resource["singularResource"],
        "namespaced": resource["scope"] == "Namespaced",
        "verbs": resource["verbs"],
        "short_names": resource.get("shortNames", []),
        "categories": resource.get("categories", []),
        "subresources": subresources,
        "has_status": any(s["name"] == "status" for s in subresources),
        "has_generation": qualified in _WITH_GENERATION,
        "virtual": resource["verbs"] == ["create"] or group == "metrics.k8s.io",
        "selectable": _SELECTABLE.get(qualified, "").split(),
    }
    if qualified == "events.events.k8s.io":
        row["storage_group"] = ""
    if qualified == "horizontalpodautoscalers.autoscaling":
        row["storage_version"] = "v2"
    return {key: value for key, value in row.items() if value not in (False, [])}


def _subresources(group: str, version: str, resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for sub in resource.get("subresources", ()):
        if sub["subresource"] not in _NOT_OFFERED:
            kind = sub["responseKind"]
            own = bool(kind["version"])
            yield {
                "name": sub["subresource"],
                "kind": kind["kind"],
                "group": kind["group"] if own else group,
                "version": kind["version"] if own else version,
                "verbs": sub["verbs"],
            }
