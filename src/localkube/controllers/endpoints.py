"""EndpointSlices and Endpoints of Services with a selector: the addresses of their pods."""

import ipaddress
from collections.abc import Iterable
from itertools import islice

from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES
from localkube.controllers.endpoint_slices_plan import Ports, Slice, arranged
from localkube.controllers.pods import controller_reference, is_ready
from localkube.controllers.run import Context, Controller, Watch
from localkube.controllers.selecting import Selecting, add_pod_index, compiled, selected_pods

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_MANAGER = "endpointslice-controller.k8s.io"
_HEADLESS = "service.kubernetes.io/headless"
_FAMILY = "IPv4"  # of all Services here
_BY_SERVICE = "service"
_LABELS_MAX = 1000  # of an object (docs/local-cluster.md)


async def reconcile(key: Key, context: Context) -> float | None:
    service = context.of(SERVICES).get(key[1], key[0])
    if service is None or not service["spec"].get("selector"):
        return None
    pods = [pod for pod in await pods_of(service, context) if _has_address(pod)]
    pods.sort(key=lambda pod: str(pod["metadata"]["name"]))
    await _write_slices(service, pods, context)
    await _write_endpoints(service, pods, context)
    return None


async def pods_of(service: Obj, context: Context) -> list[Obj]:
    """The pods that the Service selects. Needs the index of `add_pod_index`."""
    selector = compiled(_selector(service))
    return await selected_pods(context, service["metadata"]["namespace"], selector)


def _selector(service: Obj) -> Obj | None:
    """A Service without one selects nothing, and its endpoints are somebody else's."""
    wanted = service["spec"].get("selector")
    return {"matchLabels": wanted} if wanted else None


def _service_of_slice(endpoint_slice: Obj) -> list[str]:
    metadata = endpoint_slice["metadata"]
    name = (metadata.get("labels") or {}).get(SERVICE_NAME)
    return [f"{metadata['namespace']}/{name}"] if name else []


def _slice_key(endpoint_slice: Obj, _: Context) -> Iterable[Key]:
    for name in _service_of_slice(endpoint_slice):
        namespace, service = name.split("/")
        yield namespace, service


def controller() -> Controller:
    services = Selecting(_selector)

    def add_indexes(context: Context) -> None:
        add_pod_index(context)
        services.follow(context.of(SERVICES))
        context.of(ENDPOINT_SLICES).add_index(_BY_SERVICE, _service_of_slice)

    return Controller(
        "endpoint-slice-controller",
        (Watch(SERVICES), Watch(PODS, services.keys), Watch(ENDPOINT_SLICES, _slice_key)),
        reconcile,
        reads=(ENDPOINTS,),
        add_indexes=add_indexes,
    )


def _has_address(pod: Obj) -> bool:
    """Of our family: a pod with an address of another must not keep the others out."""
    status = pod.get("status", {})
    return _is_ipv4(status.get("podIP", "")) and status.get("phase") not in ("Succeeded", "Failed")


def _is_ipv4(address: str) -> bool:
    try:
        ipaddress.IPv4Address(address)
    except ValueError:
        return False
    return True


def target_port(service_port: Obj, pod: Obj) -> int | None:
    """The number of the targetPort, which may be the name of a container's port."""
    wanted = service_port.get("targetPort", service_port["port"])
    if isinstance(wanted, int):
        return wanted
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            same_protocol = port.get("protocol", "TCP") == service_port.get("protocol", "TCP")
            if port.get("name") == wanted and same_protocol:
                number: int = port["containerPort"]
                return number
    return None


def _ports(service: Obj, pod: Obj) -> Ports:
    found = (
        (port.get("name", ""), port.get("protocol", "TCP"), target_port(port, pod))
        for port in service["spec"].get("ports") or ()
    )
    return tuple((name, protocol, number) for name, protocol, number in found if number)


def _is_serving(service: Obj, pod: Obj) -> bool:
    return is_ready(pod) or bool(service["spec"].get("publishNotReadyAddresses"))


def _endpoint(service: Obj, pod: Obj) -> Obj:
    terminating = "deletionTimestamp" in pod["metadata"]
    serving, always = is_ready(pod), bool(service["spec"].get("publishNotReadyAddresses"))
    where = {"nodeName": pod["spec"]["nodeName"]} if pod["spec"].get("nodeName") else {}
    # The name has a meaning only within the Service that the pod says it belongs to.
    if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == service["metadata"]["name"]:
        where["hostname"] = pod["spec"]["hostname"]
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": always or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": _reference(pod),
    } | where


def _reference(pod: Obj) -> Obj:
    metadata = pod["metadata"]
    return {
        "kind": "Pod",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
    }


async def _write_slices(service: Obj, pods: list[Obj], context: Context) -> None:
    metadata = service["metadata"]
    groups: dict[Ports, list[Obj]] = {}
    for pod in pods:
        groups.setdefault(_ports(service, pod), []).append(_endpoint(service, pod))
    mine = [
        found
        for found in context.of(ENDPOINT_SLICES).by(
            _BY_SERVICE, f"{metadata['namespace']}/{metadata['name']}"
        )
        if (found["metadata"].get("labels") or {}).get(MANAGED_BY) == _MANAGER
    ]
    mine.sort(key=lambda found: str(found["metadata"]["name"]))
    # The type of a slice cannot be changed.
    usable = [each for each in mine if each["addressType"] == _FAMILY]
    wanted, surplus = arranged(usable, groups)
    for each in wanted:
        await _write_slice(service, each, context)
    others = [each for each in mine if each["addressType"] != _FAMILY]
    for unwanted in [*surplus, *others]:
        await context.delete(ENDPOINT_SLICES, unwanted)


async def _write_slice(service: Obj, wanted: Slice, context: Context) -> None:
    content: Obj = {
        "addressType": _FAMILY,
        "endpoints": wanted.endpoints,
        "ports": [{"name": n, "protocol": p, "port": number} for n, p, number in wanted.ports],
    }
    labels, known = _labels(service), wanted.known
    if known is not None:
        found = {**known, "labels": known["metadata"].get("labels")}
        if any(found.get(key) != value for key, value in {**content, "labels": labels}.items()):
            changed = {**known, "metadata": {**known["metadata"], "labels": labels}}
            await context.kube.update(ENDPOINT_SLICES, {**changed, **content})
        return
    metadata = service["metadata"]
    fresh = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [controller_reference(service, SERVICES)],
        },
        **content,
    }
    await context.kube.create(ENDPOINT_SLICES, fresh)


def _labels(service: Obj) -> Obj:
    """Those of the Service, which slices follow, and those that say whose they are. Of a Service
    that has as many labels as an object may have, the last ones are left out."""
    metadata = service["metadata"]
    own = {SERVICE_NAME: metadata["name"], MANAGED_BY: _MANAGER}
    if service["spec"].get("clusterIP") == "None":
        own[_HEADLESS] = ""
    followed = {
        key: value
        for key, value in (metadata.get("labels") or {}).items()
        if key not in own and key != _HEADLESS
    }
    return dict(islice(followed.items(), _LABELS_MAX - len(own))) | own


async def _write_endpoints(service: Obj, pods: list[Obj], context: Context) -> None:
    """Endpoints hold the same addresses, for clients from before Kubernetes 1.21."""
    metadata = service["metadata"]
    subsets: dict[Ports, Obj] = {}
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"]:
            continue
        ports = _ports(service, pod)
        subset = subsets.setdefault(ports, {})
        kind = "addresses" if _is_serving(service, pod) else "notReadyAddresses"
        address = {
            "ip": pod["status"]["podIP"],
            "targetRef": _reference(pod),
        }
        if pod["spec"].get("nodeName"):
            address["nodeName"] = pod["spec"]["nodeName"]
        subset.setdefault(kind, []).append(address)
        if ports:
            subset["ports"] = [
                {"port": number, "protocol": p} | ({"name": n} if n else {})
                for n, p, number in ports
            ]
    wanted = [subsets[ports] for ports in sorted(subsets)]
    known = context.of(ENDPOINTS).get(metadata["name"], metadata["namespace"])
    if known is None:
        fresh = {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"},
            },
        }
        await context.kube.create(ENDPOINTS, fresh | ({"subsets": wanted} if wanted else {}))
    elif (known.get("subsets") or []) != wanted:
        await context.kube.update(ENDPOINTS, {**known, "subsets": wanted})


async def _remove_with_service(key: Key, context: Context) -> float | None:
    """Endpoints have no owner reference, so garbage collection does not delete them."""
    namespace, name = key
    known = context.of(ENDPOINTS).get(name, namespace)
    ours = ((known or {}).get("metadata", {}).get("labels") or {}).get(
        "endpoints.kubernetes.io/managed-by"
    )
    if known and ours and context.of(SERVICES).get(name, namespace) is None:
        await context.delete(ENDPOINTS, known)
    return None


REMOVAL_CONTROLLER = Controller(
    "endpoint-controller", (Watch(SERVICES), Watch(ENDPOINTS)), _remove_with_service
)
