"""Objects with markup in every text that a user may choose."""

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.e2e.api import call

EVIL = "<script>document.title='broken'</script><img src=x onerror=alert(1)>\"'>"
APPS, BATCH = "/apis/apps/v1/namespaces/default", "/apis/batch/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"
KINDS = (
    "deployments",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
    "configmaps",
    "secrets",
    "services",
)


def make_evil_objects(cluster: Cluster) -> None:
    """One of each kind, with the name "evil"."""
    metadata = {"name": "evil", "annotations": {"note": EVIL, "kubernetes.io/change-cause": EVIL}}
    address = {"note": EVIL, "gpupool.io/address": f"javascript:{EVIL}"}
    link = {"name": "evil", "annotations": address}
    for path, content in _contents():
        made = {"metadata": link if path.endswith("/services") else metadata, **content}
        status, answer = call(cluster, "POST", path, made)
        assert status == 201, answer


def _contents() -> list[tuple[str, Obj]]:
    labels = {"app": "evil"}
    container: Obj = {"name": "main", "image": EVIL, "command": [EVIL]}
    container["env"] = [{"name": "A", "value": EVIL}]
    template = {
        "metadata": {"labels": labels, "annotations": {"note": EVIL}},
        "spec": {"containers": [container]},
    }
    daemons: Obj = {"selector": {"matchLabels": labels}, "template": template}
    running: Obj = {**daemons, "replicas": 0}
    once: Obj = {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    about = {"kind": "Deployment", "name": "evil", "namespace": "default"}
    event = {"involvedObject": about, "reason": "Evil", "message": EVIL, "type": "Warning"}
    return [
        (f"{APPS}/deployments", {"spec": running}),
        (f"{APPS}/statefulsets", {"spec": {**running, "serviceName": "evil"}}),
        (f"{APPS}/daemonsets", {"spec": daemons}),
        (f"{BATCH}/jobs", {"spec": {**once, "suspend": True}}),
        (f"{BATCH}/cronjobs", {"spec": {"schedule": "0 3 1 1 *", "jobTemplate": {"spec": once}}}),
        (f"{CORE}/configmaps", {"data": {"x": EVIL}}),
        (f"{CORE}/secrets", {"stringData": {"x": EVIL}}),
        (f"{CORE}/services", {"spec": {"ports": [{"port": 80}], "selector": labels}}),
        (f"{CORE}/events", event),
    ]
