"""What a Kubernetes cluster has before anybody made anything: namespaces, roles, the API's own
service, priority classes. Written through the API, so it passes the same checks as all else."""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any

from kubeclient.client import Kube
from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import (
    API_SERVICES,
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    FLOW_SCHEMAS,
    NAMESPACES,
    PRIORITY_CLASSES,
    PRIORITY_LEVELS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from localkube.apiserver.kinds import builtin_kinds
from localkube.apiserver.registration import MANAGED, local_services
from localkube.apiserver.security.bootstrap_roles import bootstrap_objects
from localkube.apiserver.security.certificates import FRONT_PROXY, Certificates
from localkube.apiserver.service_addresses import KUBERNETES_IP
from localkube.flow_control import AUTO_UPDATE, LEVELS, SCHEMAS, object_of

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_RBAC = "rbac.authorization.k8s.io"
_CRITICAL = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another "
        "node if necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}


async def bootstrap(
    kube: Kube, port: int, certificates: Certificates, roles: Iterable[Obj] = ()
) -> None:
    """Idempotent: what is there already is left alone. `roles` are RBAC objects beside those of
    every cluster."""
    for name in SYSTEM_NAMESPACES:
        await _ensure(kube, NAMESPACES, {"metadata": {"name": name}})
        account = {"metadata": {"name": "default", "namespace": name}}
        await _ensure(kube, SERVICE_ACCOUNTS, account)
    for role in (*bootstrap_objects(), *roles):
        kind = role["kind"]
        plural = kind.lower() + "s"
        namespaced = not kind.startswith("Cluster")
        await _ensure(kube, Resource(_RBAC, "v1", plural, kind, namespaced), role)
    for name, (value, why) in _CRITICAL.items():
        wanted = {"metadata": {"name": name}, "value": value, "description": why}
        await _ensure(kube, PRIORITY_CLASSES, wanted)
    await _api_service(kube, port)
    await _keep(kube, CONFIG_MAPS, _known_clients(certificates), ("data",))
    await asyncio.gather(*_flow_control(kube), *_registered(kube))


def _known_clients(certificates: Certificates) -> Obj:
    """By what API servers that requests are forwarded to know this one, and clients of it."""
    return {
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "client-ca-file": certificates.ca_pem.decode(),
            "requestheader-client-ca-file": certificates.front_proxy_ca_pem.decode(),
            "requestheader-allowed-names": f'["{FRONT_PROXY}"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-uid-headers": '["X-Remote-Uid"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        },
    }


def _flow_control(kube: Kube) -> Iterator[Coroutine[Any, Any, None]]:
    for resource, specs in ((PRIORITY_LEVELS, LEVELS), (FLOW_SCHEMAS, SCHEMAS)):
        for name, spec in specs.items():
            marked = ("annotations", AUTO_UPDATE, ("true",))
            yield _renew(kube, resource, object_of(resource.kind, name, spec), marked)


def _registered(kube: Kube) -> Iterator[Coroutine[Any, Any, None]]:
    for service in local_services(builtin_kinds()):
        yield _renew(kube, API_SERVICES, service, ("labels", MANAGED, ("true", "onstart")))


async def _renew(
    kube: Kube, resource: Resource, obj: Obj, marked: tuple[str, str, tuple[str, ...]]
) -> None:
    """Creates it, or brings its spec up to date if it still bears the mark that allows that."""
    where, mark, values = marked
    try:
        found = await kube.get(resource, obj["metadata"]["name"])
    except NotFound:
        await kube.create(resource, obj)
        return
    is_ours = (found["metadata"].get(where) or {}).get(mark) in values
    if is_ours and found["spec"] != obj["spec"]:
        await kube.update(resource, {**found, "spec": obj["spec"]})


async def _ensure(kube: Kube, resource: Resource, obj: Obj) -> None:
    metadata = obj["metadata"]
    with contextlib.suppress(NotFound):
        found = await kube.get(resource, metadata["name"], metadata.get("namespace", ""))
        if (found["metadata"].get("annotations") or {}).get(_AUTOUPDATE) == "true":
            await _mend(kube, resource, found, obj)
        return
    await kube.create(resource, obj)


async def _mend(kube: Kube, resource: Resource, found: Obj, wanted: Obj) -> None:
    """A newer version may give a built-in role more: what is missing is added."""
    for key in ("rules", "subjects"):
        missing = [each for each in wanted.get(key) or () if each not in (found.get(key) or ())]
        if missing and "aggregationRule" not in wanted:
            found[key] = [*(found.get(key) or ()), *missing]
            await kube.update(resource, found)


async def _api_service(kube: Kube, port: int) -> None:
    """default/kubernetes: where pods find the API server."""
    metadata = {"name": "kubernetes", "namespace": "default"}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    service = {
        "metadata": {**metadata, "labels": labels},
        "spec": {
            "clusterIP": KUBERNETES_IP,
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    }
    await _keep(kube, SERVICES, service, ("spec",))
    port_entry = {"name": "https", "port": port, "protocol": "TCP"}
    mirrored = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    endpoints = {
        "metadata": {**metadata, "labels": mirrored},
        # The address of a real one would be this machine's; ours answers on loopback alone, and
        # Kubernetes allows no loopback address here.
        "subsets": [{"addresses": [{"ip": KUBERNETES_IP}], "ports": [port_entry]}],
    }
    await _keep(kube, ENDPOINTS, endpoints, ("subsets",))
    endpoint_slice = {
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [KUBERNETES_IP], "conditions": {"ready": True}}],
        "ports": [port_entry],
    }
    await _keep(kube, ENDPOINT_SLICES, endpoint_slice, ("ports", "endpoints"))


async def _keep(kube: Kube, resource: Resource, obj: Obj, parts: tuple[str, ...]) -> None:
    """Like _ensure, and brought up to date: the server may listen on another port than before."""
    await _ensure(kube, resource, obj)
    metadata = obj["metadata"]
    path = resource.path(metadata["namespace"], metadata["name"])
    await kube.patch(path, {part: obj[part] for part in parts})
