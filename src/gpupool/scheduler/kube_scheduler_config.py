"""The KubeSchedulerConfiguration with which kube-scheduler asks our extender."""

from gpupool.contract.names import RESOURCE_GPU, RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT
from kubeclient.objects import Obj

VERBS = ("filter", "prioritize", "preempt", "bind")
# A pod that asks for one of them comes to us.
MANAGED = (RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT, RESOURCE_GPU)


def kube_scheduler_config(
    url: str, *, ca_file: str = "", server_name: str = "", kubeconfig: str = ""
) -> Obj:
    """`url` without the path. Without an authority of its own, the system's are trusted;
    `server_name` is what the certificate is for, where that is not the host of the URL."""
    extender: Obj = {
        "urlPrefix": f"{url.rstrip('/')}/gpushare-scheduler",
        **{f"{verb}Verb": verb for verb in VERBS},
        "weight": 5,
        "enableHTTPS": url.startswith("https://"),
        "httpTimeout": "5s",
        # Names travel, not objects: with objects kube-scheduler would score nodes without pods.
        "nodeCacheCapable": True,
        # Without us nobody would choose cards: such pods wait, they are not misplaced.
        "ignorable": False,
        "managedResources": [{"name": name, "ignoredByScheduler": False} for name in MANAGED],
    }
    tls = {"caFile": ca_file, "serverName": server_name}
    if ca_file or server_name:
        extender["tlsConfig"] = {key: value for key, value in tls.items() if value}
    config: Obj = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        # Otherwise the extender sees a sample of the nodes, and the room may be on another.
        "percentageOfNodesToScore": 100,
        "extenders": [extender],
    }
    if kubeconfig:
        config["clientConnection"] = {"kubeconfig": kubeconfig}
    return config
