"""The DaemonSet with which a local cluster runs the agent on its GPU nodes. Pure."""

from collections.abc import Iterable

from gpupool import __version__
from gpupool.contract import names
from gpupool.local.config.spec import ClusterSpec
from kubeclient import names as kube_names
from kubeclient.objects import Obj

IMAGE = "gpupool/agent"  # without its tag, which is our version
SERVICE_ACCOUNT = "gpupool-agent"
# Where the agent finds the kubelet: the node's path is the same.
PLUGINS = "/var/lib/kubelet/device-plugins"
POD_RESOURCES = "/var/lib/kubelet/pod-resources"
_MOUNTS = {"device-plugins": PLUGINS, "pod-resources": POD_RESOURCES}


def agent_account() -> Obj:
    metadata = {"name": SERVICE_ACCOUNT, "namespace": names.AGENT_NAMESPACE}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def agent_daemon_set(nodes: Obj) -> Obj:
    """`nodes` is the node selector term for its nodes."""
    labels = {"name": names.AGENT_DAEMON_SET}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": names.AGENT_DAEMON_SET,
            "namespace": names.AGENT_NAMESPACE,
            "labels": labels,
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {
                "type": "RollingUpdate",
                # All at once is safe: containers keep their cards while the agent restarts.
                "rollingUpdate": {"maxUnavailable": "100%"},
            },
            "template": {"metadata": {"labels": labels}, "spec": _pod(nodes)},
        },
    }


def _pod(nodes: Obj) -> Obj:
    required = {"nodeSelectorTerms": [nodes]}
    return {
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,  # it runs in the server's process and needs no token
        "priorityClassName": "system-node-critical",
        "hostNetwork": True,
        # Also on tainted nodes: without its agent a node offers no cards.
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "containers": [
            {
                "name": "agent",
                "image": f"{IMAGE}:{__version__}",
                "command": ["gpupool", "agent"],
                "env": [
                    {
                        "name": "NODE_NAME",
                        "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
                    }
                ],
                # Not a port of this machine: port-forward connects to it inside the process.
                "ports": [{"name": names.AGENT_PORT_NAME, "containerPort": names.AGENT_PORT}],
                "volumeMounts": [
                    {"name": name, "mountPath": path} for name, path in _MOUNTS.items()
                ],
            }
        ],
        "volumes": [{"name": name, "hostPath": {"path": path}} for name, path in _MOUNTS.items()],
    }


def with_cards(spec: ClusterSpec) -> Obj:
    """Selects the nodes whose instance types have cards."""
    types = sorted(name for name, machine in spec.instance_types.items() if machine.gpu)
    return _in(kube_names.LABEL_INSTANCE_TYPE, types)


def first_with_cards(spec: ClusterSpec, nodes: Iterable[Obj]) -> Obj:
    """Selects only the first such node: the machine's own cards can belong to one node only."""
    for node in nodes:
        labels = node["metadata"]["labels"]
        if spec.instance_types[labels[kube_names.LABEL_INSTANCE_TYPE]].gpu:
            return _in(kube_names.LABEL_HOSTNAME, [node["metadata"]["name"]])
    return with_cards(spec)


def _in(label: str, values: list[str]) -> Obj:
    return {"matchExpressions": [{"key": label, "operator": "In", "values": values}]}
