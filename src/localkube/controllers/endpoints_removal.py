"""Endpoints have no owner reference, so somebody has to see that they go with their service."""

import contextlib

from kubeclient.errors import NotFound
from kubeclient.mirror import Key
from kubeclient.resources import ENDPOINTS, SERVICES
from localkube.controllers.run import Context, Controller, Watch


async def reconcile(key: Key, context: Context) -> float | None:
    namespace, name = key
    known = context.of(ENDPOINTS).get(name, namespace)
    ours = ((known or {}).get("metadata", {}).get("labels") or {}).get(
        "endpoints.kubernetes.io/managed-by"
    )
    if ours and context.of(SERVICES).get(name, namespace) is None:
        with contextlib.suppress(NotFound):
            await context.kube.delete(ENDPOINTS, name, namespace)
    return None


CONTROLLER = Controller("endpoint-controller", (Watch(SERVICES), Watch(ENDPOINTS)), reconcile)
