"""The KubeSchedulerConfiguration that makes kube-scheduler call our extender."""

from gpupool.contract.names import RESOURCE_GPU, RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT
from kubeclient.objects import Obj

VERBS = ("filter", "prioritize", "preempt", "bind")
# kube-scheduler calls the extender for pods that request one of these.
MANAGED = (RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT, RESOURCE_GPU)


def kube_scheduler_config(
    url: str, *, ca_file: str = "", server_name: str = "", kubeconfig: str = ""
) -> Obj:
    """`url` without the path.

    Without `ca_file` the CAs of the system are trusted. `server_name` is the name in the
    certificate, where that is not the host of the URL.
    """
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
    tls = {"caFile": ca_file, "serverName": server_name}
    if ca_file or server_name:
        extender["tlsConfig"] = {key: value for key, value in tls.items() if value}
    config: Obj = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    }
    if kubeconfig:
        config["clientConnection"] = {"kubeconfig": kubeconfig}
    return config
