"""The KubeSchedulerConfiguration that makes kube-scheduler call our extender."""

from dataclasses import dataclass

from gpupool.contract.names import (
    EXTENDER_PROFILE,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from kubeclient.names import DEFAULT_SCHEDULER_NAME
from kubeclient.objects import Obj

VERBS = ("filter", "prioritize", "preempt", "bind")
# kube-scheduler calls the extender for pods that request one of these.
MANAGED = (RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT, RESOURCE_GPU)
SMALLEST_SAMPLE = 1  # per cent: kube-scheduler looks for 100 of up to 10,000 nodes


@dataclass(frozen=True, slots=True)
class ExtenderTls:
    """Of kube-scheduler's questions, as paths that kube-scheduler sees."""

    ca_file: str = ""  # empty: kube-scheduler trusts whoever answers
    server_name: str = ""  # in the certificate, where that is not the host of the URL
    cert_file: str = ""  # kube-scheduler shows this certificate
    key_file: str = ""


NO_TLS = ExtenderTls()


def kube_scheduler_config(
    url: str, tls: ExtenderTls = NO_TLS, *, kubeconfig: str = "", percent: int = SMALLEST_SAMPLE
) -> Obj:
    """`url` without the path. `percent`: of the nodes, which kube-scheduler looks for before it
    asks about a pod with GPUs, and 100 of them at least."""
    extender: Obj = {
        "urlPrefix": f"{url.rstrip('/')}/gpushare-scheduler",
        **{f"{verb}Verb": verb for verb in VERBS},
        "weight": 5,
        "enableHTTPS": url.startswith("https://"),
        "httpTimeout": "5s",
        # Send node names, not objects: from objects that an extender returns kube-scheduler would
        # build nodes without their pods, and score those.
        "nodeCacheCapable": True,
        # Without the extender nobody chooses cards: such pods must stay pending.
        "ignorable": False,
        "managedResources": [{"name": name, "ignoredByScheduler": False} for name in MANAGED],
    }
    given = {
        "caFile": tls.ca_file,
        "serverName": tls.server_name,
        "certFile": tls.cert_file,
        "keyFile": tls.key_file,
    }
    if any(given.values()):
        extender["tlsConfig"] = {key: value for key, value in given.items() if value}
    config: Obj = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            # Pods without GPUs, which nothing of ours may change.
            {"schedulerName": DEFAULT_SCHEDULER_NAME},
            # No plugin is left out: where the extender returns one node none of them scores, and
            # where it returns several, for pods with volumes, their scores count.
            {"schedulerName": EXTENDER_PROFILE, "percentageOfNodesToScore": percent},
        ],
        "extenders": [extender],
    }
    if kubeconfig:
        config["clientConnection"] = {"kubeconfig": kubeconfig}
    return config


def is_managed(pod: Obj) -> bool:
    """Whether kube-scheduler asks the extender about the pod."""
    return any(
        resource in ((container.get("resources") or {}).get("limits") or {})
        for part in ("containers", "initContainers")
        for container in pod["spec"].get(part) or ()
        for resource in MANAGED
    )
