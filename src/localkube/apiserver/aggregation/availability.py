"""Looks whether the API servers behind APIServices answer, and says so in their status.

The checks, their order and their words are those of kube-apiserver. One that answers is also asked
what it serves, for discovery.
"""

import asyncio
import contextlib
from collections.abc import Callable

import orjson

from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import API_SERVICES
from kubeclient.times import stamp
from localkube.apiserver.admission.attributes import ClusterView
from localkube.apiserver.aggregation.proxy import Forwarder, NotReached
from localkube.apiserver.aggregation.registry import AVAILABLE, RESOURCE, Remote, Remotes
from localkube.apiserver.request import Request, User
from localkube.apiserver.store.watch_log import Event

_SLICES = "endpointslices.discovery.k8s.io"
_WATCHED = frozenset({RESOURCE, "services", _SLICES})
_EVERY_S = 30.0
_FAILED_EVERY_S = 2.0
_PATIENCE_S = 5.0
_AGGREGATOR = User("system:kube-aggregator", ("system:masters",))
_MAX_DISCOVERY_BYTES = 4 * 1024 * 1024

Verdict = tuple[str, str, str]  # status, reason and message of the condition


class Availability:
    def __init__(self, remotes: Remotes, forwarder: Forwarder) -> None:
        self._remotes = remotes
        self._forwarder = forwarder
        self._changed = asyncio.Event()

    def changed(self, event: Event) -> None:
        """Called with every change in the store."""
        if event.record.resource in _WATCHED and any(self._remotes):
            self._changed.set()

    async def run(self, kube: Kube, now_s: Callable[[], float]) -> None:
        """Until cancelled."""
        while True:
            self._changed.clear()
            are_well = [await self._look(kube, remote, now_s()) for remote in self._remotes]
            pause_s = _EVERY_S if all(are_well) else _FAILED_EVERY_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s if are_well else None):
                    await self._changed.wait()

    async def _look(self, kube: Kube, remote: Remote, now_s: float) -> bool:
        verdict = _in_cluster(remote, self._forwarder.cluster) or await self._asked(remote)
        with contextlib.suppress(Refused):  # it has changed meanwhile, and comes again
            found = await kube.get(API_SERVICES, remote.name)
            new = _with_condition(found.get("status") or {}, verdict, stamp(now_s))
            if new != found.get("status"):
                await kube.update_status(API_SERVICES, {**found, "status": new})
        return verdict[0] == "True"

    async def _asked(self, remote: Remote) -> Verdict:
        where = f"https://{remote.host}:{remote.service.port}{remote.path}"
        request = Request("GET", remote.path, headers={"accept": "application/json"})
        try:
            async with (
                asyncio.timeout(_PATIENCE_S),
                self._forwarder.asked(request, _AGGREGATOR, remote) as response,
            ):
                body = await response.content.read(_MAX_DISCOVERY_BYTES)
                while chunk := await response.content.read(_MAX_DISCOVERY_BYTES - len(body)):
                    body += chunk
        except TimeoutError:
            return _failed(where, "context deadline exceeded")
        except (NotReached, OSError) as error:
            return _failed(where, str(error))
        if not 200 <= response.status < 300:
            return _failed(where, f"bad status from {where}: {response.status}")
        self._remotes.learn(remote, _resources(body))
        return "True", "Passed", "all checks passed"


def _failed(where: str, why: str) -> Verdict:
    return "False", "FailedDiscoveryCheck", f"failing or missing response from {where}: {why}"


def _resources(body: bytes) -> tuple[Obj, ...]:
    """Those that are what they should be: somebody else wrote them."""
    try:
        listed = orjson.loads(body)["resources"]
        return tuple(
            each
            for each in listed
            if isinstance(each["name"], str)
            and isinstance(each["kind"], str)
            and isinstance(each["namespaced"], bool)
            and all(isinstance(verb, str) for verb in each["verbs"])
        )
    except (ValueError, TypeError, KeyError):
        return ()


def _in_cluster(remote: Remote, cluster: ClusterView) -> Verdict | None:
    """What the cluster's own objects tell; None if nothing speaks against asking."""
    service = remote.service
    shown = f'service/{service.name} in "{service.namespace}"'
    found = cluster.get("services", service.namespace, service.name)
    if found is None:
        return "False", "ServiceNotFound", f"{shown} is not present"
    if found["spec"].get("type", "ClusterIP") != "ClusterIP":
        return None
    ports = found["spec"].get("ports") or ()
    port = next((each for each in ports if each.get("port") == service.port), None)
    if port is None:
        return "False", "ServicePortError", f"{shown} is not listening on port {service.port}"
    slices = [
        each
        for each in cluster.list(_SLICES, service.namespace)
        if (each["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == service.name
    ]
    if not slices:
        return "False", "EndpointsNotFound", f"cannot find endpointslices for {shown}"
    name = port.get("name", "")
    if not any(_has_ready(each, name) for each in slices):
        text = f'endpointslices for {shown} have no addresses with port name "{name}"'
        return "False", "MissingEndpoints", text
    return None


def _has_ready(endpoint_slice: Obj, port_name: str) -> bool:
    ready = any(
        (each.get("conditions") or {}).get("ready", True) is not False
        for each in endpoint_slice.get("endpoints") or ()
    )
    ports = endpoint_slice.get("ports") or ()
    return ready and any((p.get("name") or "") == port_name and p.get("port") for p in ports)


def _with_condition(known: Obj, verdict: Verdict, now: str) -> Obj:
    new = dict(zip(("status", "reason", "message"), verdict, strict=True))
    conditions = known.get("conditions", [])
    old = next((each for each in conditions if each["type"] == AVAILABLE), None)
    since = old["lastTransitionTime"] if old and old["status"] == new["status"] else now
    made = {"type": AVAILABLE, **new, "lastTransitionTime": since}
    if old is None:
        return {**known, "conditions": [*conditions, made]}
    return {**known, "conditions": [made if each is old else each for each in conditions]}
