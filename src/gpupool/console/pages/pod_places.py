"""What the pages of one pod have in common: finding it, where they stand, what they need."""

from gpupool.console.parts.page import NoSuchThing
from gpupool.console.rights import Right
from gpupool.console.visit import Visit
from kubeclient.objects import Obj
from kubeclient.resources import PODS


async def found_pod(visit: Visit) -> Obj:
    """Raises NoSuchThing, and as `Visit.watch`."""
    namespace, name = visit.names["namespace"], visit.names["name"]
    pod = (await visit.watch(PODS, namespace)).mirror.get(name, namespace)
    if pod is None:
        words = visit.t('pod "{name}" in namespace "{namespace}"', name=name, namespace=namespace)
        raise NoSuchThing(words)
    return pod


def pod_crumbs(visit: Visit, *, with_pod: bool = False) -> tuple[tuple[str, str], ...]:
    namespace, name = visit.names["namespace"], visit.names["name"]
    above = (
        (visit.t("Pods"), visit.link("pods")),
        (namespace, visit.link("pods", namespace=namespace)),
    )
    return (*above, (name, visit.link("pods", namespace, name))) if with_pod else above


def log_rights(namespace: str) -> tuple[Right, ...]:
    return (Right("get", PODS, namespace, "log"),)


def exec_rights(namespace: str) -> tuple[Right, ...]:
    # A WebSocket is a GET; newer API servers want the right to create as well.
    return tuple(Right(verb, PODS, namespace, "exec") for verb in ("create", "get"))
