"""A tiny API in memory, in which every request waits until the test chooses its outcome."""

import asyncio
import contextlib
import copy
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import orjson

from gpupool.contract.allocation import BadAllocation, allocation_of
from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_INVENTORY,
    RESOURCE_GPU_MEM,
)
from gpupool.core.gpu import Card, CardHealth, ContainerGpus, Inventory
from gpupool.scheduler.run import Scheduler, SchedulerSettings
from kubeclient.client import Headers, Kube, Query
from kubeclient.errors import NoAnswer
from kubeclient.objects import Obj
from tests.scheduler.world import POLICY

UNITS = 4
CARDS = 2
Change = tuple[str, Obj | None, Obj | None]  # resource, old, new


class Fate(Enum):
    OK = auto()
    LOST_REQUEST = auto()
    LOST_ANSWER = auto()
    BUSY = auto()
    FORBIDDEN = auto()


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: Any  # an object, or the steps of a JSON patch
    answer: "asyncio.Future[tuple[int, bytes]]"


class ModelApi:
    def __init__(self) -> None:
        self.pods: dict[str, Obj] = {}  # by name
        self.nodes: dict[str, Obj] = {}
        self.requests: list[Request] = []
        self.news: deque[Change] = deque()  # changes that no watch has reported yet
        # Pods that are bound stay, terminating, after a DELETE, until the test deletes them.
        self.graceful = False
        self.protected: set[str] = set()  # names of pods that a webhook does not let anybody delete
        self.writes = 0  # requests so far
        self._serial = 0
        self._version = 0

    # -- changes by others -----------------------------------------------------------------

    def add_pod(
        self,
        name: str,
        units: int,
        priority: int = 0,
        spec: Mapping[str, Any] | None = None,
        *,
        grace_s: int = 30,
        **metadata: Any,
    ) -> None:
        self._serial += 1
        asked = {RESOURCE_GPU_MEM: str(units)} if units else {}
        resources = {"requests": asked, "limits": asked}
        self._put(
            "pods",
            {
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "uid": f"uid-{self._serial}",
                    "creationTimestamp": f"{self._serial:09}",
                    **metadata,
                },
                "spec": {
                    "schedulerName": "gpupool-scheduler",
                    "priority": priority,
                    "terminationGracePeriodSeconds": grace_s,
                    "containers": [{"name": "c", "resources": resources}],
                    **(spec or {}),
                },
            },
        )

    def delete_pod(self, name: str) -> None:
        self.news.append(("pods", self.pods.pop(name), None))

    def finish_pod(self, name: str, phase: str = "Succeeded") -> None:
        self.set_status(name, phase=phase)

    def terminate_pod(self, name: str) -> None:
        """It is being deleted, and stays: its processes end slowly, or a finalizer keeps it."""
        pod = self.pods[name]
        metadata = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        self._put("pods", {**pod, "metadata": metadata})

    def set_node(self, name: str, *, ill: bool) -> None:
        health = CardHealth.UNHEALTHY if ill else CardHealth.HEALTHY
        cards = [Card(0, f"{name}-0", "m", UNITS * 1024, health)]
        cards += [Card(i, f"{name}-{i}", "m", UNITS * 1024) for i in range(1, CARDS)]
        amounts = {RESOURCE_GPU_MEM: str(UNITS * CARDS), "pods": "100"}
        metadata = {
            "name": name,
            "labels": {"cgpu": "true", "kubernetes.io/hostname": name},
            "annotations": {ANNOTATION_INVENTORY: inventory_text(Inventory(tuple(cards)))},
        }
        self._put("nodes", {"metadata": metadata, "status": {"allocatable": amounts}})

    def set_spec(self, resource: str, name: str, **changes: object) -> None:
        kept = self.pods if resource == "pods" else self.nodes
        obj = kept[name]
        self._put(resource, {**obj, "spec": {**obj.get("spec", {}), **changes}})

    def set_status(self, pod: str, **changes: object) -> None:
        known = self.pods[pod]
        self._put("pods", {**known, "status": {**known.get("status", {}), **changes}})

    def remove_node(self, name: str) -> None:
        self.news.append(("nodes", self.nodes.pop(name), None))

    def annotate(self, resource: str, name: str, changes: Mapping[str, str | None]) -> None:
        """None: remove the annotation."""
        kept = self.pods if resource == "pods" else self.nodes
        obj = copy.deepcopy(kept[name])
        merged = obj["metadata"].get("annotations", {}) | changes
        left = {key: value for key, value in merged.items() if value is not None}
        obj["metadata"]["annotations"] = left
        self._put(resource, obj)

    def _put(self, resource: str, obj: Obj) -> None:
        kept = self.pods if resource == "pods" else self.nodes
        name = obj["metadata"]["name"]
        self._version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        self.news.append((resource, kept.get(name), obj))
        kept[name] = obj

    # -- requests of clients ---------------------------------------------------------------

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        self.writes += 1
        answer: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self.requests.append(Request(method, path, orjson.loads(body) if body else {}, answer))
        return await answer

    def stream(self, path: str, *, query: Query, headers: Headers) -> AsyncGenerator[bytes, None]:
        raise AssertionError("changes are told by hand")

    def settle(self, request: Request, fate: Fate) -> None:
        self.requests.remove(request)
        if request.answer.done():  # the client has given up; the request may still happen
            if fate is not Fate.LOST_REQUEST:
                self._do(request)
            return
        if fate in _REFUSALS:
            request.answer.set_result(_REFUSALS[fate])
            return
        answer = self._do(request) if fate is not Fate.LOST_REQUEST else (0, b"")
        if fate is Fate.OK:
            request.answer.set_result(answer)
        else:
            request.answer.set_exception(NoAnswer("lost"))

    def _do(self, request: Request) -> tuple[int, bytes]:
        parts = request.path.split("/")
        name = parts[6]
        pod = self.pods.get(name)
        uid = _uid_meant(request)
        if pod is None:
            return _status(404, "NotFound")
        if uid and pod["metadata"]["uid"] != uid:
            return _status(409, "Conflict")
        if request.path.endswith("/binding"):
            return self._bind(pod, request.body)
        if request.method == "DELETE":
            return self._delete(pod, request.body)
        elif isinstance(request.body, list):
            _uid, test, remove = request.body
            if (pod.get("status") or {}).get("nominatedNodeName") != test["value"]:
                return _status(422, "Invalid")
            assert test["path"] == remove["path"] == "/status/nominatedNodeName"
            self.set_status(name, nominatedNodeName=None)
        elif "annotations" in request.body.get("metadata", {}):
            if request.body["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]:
                return _status(409, "Conflict")
            self.annotate("pods", name, request.body["metadata"]["annotations"])
        elif "status" in request.body:
            self.set_status(name, **request.body["status"])
        return 200, orjson.dumps(self.pods.get(name, {}))

    def _delete(self, pod: Obj, options: Obj) -> tuple[int, bytes]:
        name = pod["metadata"]["name"]
        if name in self.protected:
            return _status(403, "Forbidden")
        if not options.get("dryRun"):
            if self.graceful and pod["spec"].get("nodeName"):
                self.terminate_pod(name)
            else:
                self.delete_pod(name)
        return 200, b"{}"

    def _bind(self, pod: Obj, binding: Obj) -> tuple[int, bytes]:
        if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            return _status(409, "Conflict")
        bound = copy.deepcopy(pod)
        bound["spec"]["nodeName"] = binding["target"]["name"]
        bound["metadata"]["annotations"] = binding["metadata"].get("annotations", {})
        self._put("pods", bound)
        return 201, b"{}"

    # -- state of the server ---------------------------------------------------------------

    def placements(self) -> dict[str, tuple[str, str]]:
        """uid -> node and allocation of pods that are bound and have not ended."""
        return {
            pod["metadata"]["uid"]: (
                pod["spec"]["nodeName"],
                pod["metadata"].get("annotations", {}).get(ANNOTATION_ALLOCATION, ""),
            )
            for pod in self.pods.values()
            if pod["spec"].get("nodeName") and not _ended(pod)
        }

    def units_by_card(self) -> Counter[str]:
        """Without allocations that cannot be read."""
        held: Counter[str] = Counter()
        for _, text in self.placements().values():
            for container in _containers(text):
                for share in container.shares:
                    held[share.uuid] += share.units
        return held


def _containers(text: str) -> tuple[ContainerGpus, ...]:
    with contextlib.suppress(BadAllocation):
        return allocation_of(text).containers
    return ()


def _ended(pod: Obj) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _uid_meant(request: Request) -> str:
    body = request.body
    if request.method == "DELETE":
        return str(body["preconditions"]["uid"])
    if isinstance(body, list):  # the steps of a JSON patch
        return str(body[0]["value"])
    return str(body.get("metadata", {}).get("uid", ""))


def _status(code: int, reason: str) -> tuple[int, bytes]:
    return code, orjson.dumps({"kind": "Status", "code": code, "reason": reason})


_REFUSALS = {
    Fate.BUSY: _status(429, "TooManyRequests"),
    Fate.FORBIDDEN: _status(403, "Forbidden"),
}


def started(api: ModelApi, clock: Callable[[], float]) -> Scheduler:
    """A new scheduler that has read everything from the API."""
    made = Scheduler(Kube(api), SchedulerSettings(POLICY, clock=clock))
    read_all(api, made)
    return made


def read_all(api: ModelApi, scheduler: Scheduler) -> None:
    api.news.clear()
    for node in api.nodes.values():
        scheduler.state.node_changed(None, node)
    for pod in api.pods.values():
        scheduler.state.pod_changed(None, pod)
    scheduler.inherit()
