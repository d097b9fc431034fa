"""Defaults of pods, and of the pod templates inside other kinds."""

from kubeclient.objects import Obj
from localkube.apiserver.defaults.containers import (
    container,
    host_ports,
    requests_from_limits,
)
from localkube.apiserver.defaults.pod_resources import pod_level_resources
from localkube.apiserver.defaults.volumes import volume

# Written by clients of Kubernetes before 1.8; dropped, so that they never take effect.
_OLD_ANNOTATIONS = tuple(
    f"pod.{stage}.kubernetes.io/init-container{what}"
    for stage in ("alpha", "beta")
    for what in ("s", "-statuses")
)


def pod(value: Obj) -> None:
    spec: Obj = value["spec"]
    pod_spec(spec)
    containers = spec.get("containers", [])
    if "initContainers" in spec:
        containers = [*containers, *spec["initContainers"]]
    for one in containers:
        requests_from_limits(one)
    if "resources" in spec:
        pod_level_resources(spec)
    spec.setdefault("enableServiceLinks", True)
    if "hostNetwork" in spec:
        for one in containers:
            host_ports(one)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _drop_old_annotations(value["metadata"])
    if "podIP" in value["status"] or "podIPs" in value["status"]:
        _agree_on_address(value["status"])


def _agree_on_address(status: Obj) -> None:
    """podIP is the first of podIPs; where they differ, podIP wins."""
    address, listed = status.get("podIP"), status.get("podIPs")
    if not address:
        status["podIP"] = listed[0].get("ip", "") if listed else ""
    elif not listed or listed[0].get("ip") != address:
        status["podIPs"] = [{"ip": address}]


def pod_template(value: Obj) -> None:
    pod_spec(value["spec"])


def template_in_spec(value: Obj) -> None:
    pod_template(value["spec"]["template"])


def pod_spec(spec: Obj) -> None:
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    if "serviceAccount" in spec or "serviceAccountName" in spec:
        _same_service_account(spec)
    spec.pop("workloadRef", None)  # of a feature that this release has switched off
    for one in spec.get("containers", ()):
        container(one)
    for name in ("initContainers", "ephemeralContainers"):
        if name in spec:
            for one in spec[name]:
                container(one)
    for one in spec.get("volumes", ()):
        volume(one)


def _same_service_account(spec: Obj) -> None:
    """`serviceAccount` is the old name of `serviceAccountName`: both are kept, alike."""
    name = spec.get("serviceAccountName") or spec["serviceAccount"]
    spec["serviceAccountName"] = spec["serviceAccount"] = name


def _drop_old_annotations(metadata: Obj) -> None:
    annotations = metadata.get("annotations")
    if annotations:
        for name in _OLD_ANNOTATIONS:
            annotations.pop(name, None)
