"""Where the console shows an object: its own page."""

from gpupool.console.visit import Visit

# Kinds with a page for each object.
_PAGES = {
    "Pod": "pods",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
    "CronJob": "cronjobs",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Service": "services",
}


def address_of(visit: Visit, kind: str, namespace: str, name: str) -> str:
    """Empty: the console does not show objects of this kind."""
    if kind in _PAGES:
        return visit.link(_PAGES[kind], namespace, name)
    if kind == "Node":
        return visit.link("nodes", name)
    if kind == "NodePool":
        return visit.link("pools", name)
    return ""
