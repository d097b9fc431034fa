"""Where the console shows an object: its own page, or the list in which it stands."""

from gpupool.console.visit import Visit

# Kinds without a page of their own, and their lists.
_LISTS = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "Service": "services",
    "NodePool": "pools",
}


def address_of(visit: Visit, kind: str, namespace: str, name: str) -> str:
    """Empty: the console does not show objects of this kind."""
    if kind == "Pod":
        return visit.link("pods", namespace, name)
    if kind == "Node":
        return visit.link("nodes", name)
    return visit.link(_LISTS[kind], namespace=namespace, q=name) if kind in _LISTS else ""
