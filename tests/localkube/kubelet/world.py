"""A real API server in this process, a fleet and a node. Tests wait for events, and never sleep for
a fixed time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

from kubeclient.client import Kube
from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, EVENTS, NODES, PODS
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import ApiServer, build
from localkube.apiserver.store.watch_log import Event
from localkube.kubelet.fleet import Fleet
from localkube.kubelet.lifecycle import RestartBackoff
from localkube.kubelet.settings import FleetSettings
from localkube.names import DEFAULT as NAMES
from localkube.node_streams import ExecOptions, LogOptions, NodeStreams, Process

NODE = "n0"
PATIENCE_S = 30.0


def node(name: str = NODE, **allocatable: str) -> Obj:
    resources = {"cpu": "8", "memory": "16Gi", "pods": "110"} | allocatable
    return {
        "metadata": {"name": name, "labels": {NAMES.node_label: "workers"}},
        "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "192.168.0.1"}],
            "capacity": resources,
            "allocatable": resources,
        },
    }


def pod(name: str, *command: str, **spec: object) -> Obj:
    """A pod with one container `c` that runs the command; `container` has more of its fields."""
    container = {"name": "c", "image": "busybox"} | dict(spec.pop("container", {}))  # type: ignore[call-overload]
    if command:
        container["command"] = list(command)
    annotations = spec.pop("annotations", {})
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {
        "metadata": metadata,
        "spec": {
            "nodeName": NODE,
            "containers": [container],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            **spec,
        },
    }


def shell(name: str, script: str, **spec: object) -> Obj:
    return pod(name, "sh", "-c", script, **spec)


def container(found: Obj, name: str = "c") -> Obj:
    """The status of a container; empty if there is none yet."""
    status = found.get("status", {})
    for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for entry in status.get(field, ()):
            if entry["name"] == name:
                return dict(entry)
    return {}


def condition(found: Obj, kind: str) -> Obj:
    listed = found.get("status", {}).get("conditions", ())
    return next((dict(c) for c in listed if c["type"] == kind), {})


def phase_is(phase: str) -> Callable[[Obj], bool]:
    return lambda found: found.get("status", {}).get("phase") == phase


def is_ready(found: Obj) -> bool:
    return condition(found, "Ready").get("status") == "True"


class World:
    def __init__(self, server: ApiServer, fleet: Fleet) -> None:
        self.server = server
        self.fleet = fleet
        self.kube: Kube = server.client(ADMIN)
        self.writes: list[tuple[str, str]] = []  # resource and name
        self._changed = asyncio.Event()
        server.api.store.on_change(self._wrote)

    def _wrote(self, event: Event) -> None:
        self.writes.append((event.record.resource, event.record.name))
        self._changed.set()

    async def create(self, obj: Obj) -> Obj:
        return await self.kube.create(PODS, obj)

    async def run(self, obj: Obj, reached: Callable[[Obj], bool] = is_ready) -> Obj:
        created = await self.create(obj)
        return await self.until(created["metadata"]["name"], reached)

    async def until(self, name: str, reached: Callable[[Obj], bool]) -> Obj:
        found: Obj = {}
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    self._changed.clear()
                    found = await self.kube.get(PODS, name, "default")
                    if reached(found):
                        return found
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"never reached: {found.get('status')}") from None

    async def until_gone(self, name: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self._changed.clear()
                try:
                    await self.kube.get(PODS, name, "default")
                except NotFound:
                    return
                await self._changed.wait()

    async def until_event(self, reason: str, about: str) -> Obj:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self._changed.clear()
                for event in (await self.kube.list(EVENTS)).items:
                    if event["reason"] == reason and event["involvedObject"]["name"] == about:
                        return event
                await self._changed.wait()

    async def until_node(self, reached: Callable[[Obj], bool], name: str = NODE) -> Obj:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self._changed.clear()
                found = await self.kube.get(NODES, name)
                if reached(found):
                    return found
                await self._changed.wait()

    async def delete(self, name: str, grace_s: int | None = None) -> None:
        options = None if grace_s is None else {"gracePeriodSeconds": grace_s}
        await self.kube.delete(PODS, name, "default", options=options)

    @property
    def streams(self) -> NodeStreams:
        streams = self.fleet.streams(NODE)
        assert streams is not None
        return streams

    async def log(self, found: Obj, name: str = "c", **options: object) -> bytes:
        wanted = LogOptions(container=name, **options)  # type: ignore[arg-type]
        chunks = self.streams.logs(found["metadata"]["uid"], wanted)
        return b"".join([chunk async for chunk in chunks])

    async def logged(self, found: Obj, text: str) -> str:
        """The log of the container, once this is in it."""
        wanted = LogOptions(container="c", follow=True)
        said = b""
        try:
            async with asyncio.timeout(PATIENCE_S):
                async for chunk in self.streams.logs(found["metadata"]["uid"], wanted):
                    said += chunk
                    if text.encode() in said:
                        return said.decode()
        except TimeoutError:
            pass
        raise AssertionError(f"{text!r} is not in the log: {said.decode()}")

    async def exec(self, found: Obj, *command: str, **options: bool) -> Process:
        wanted = ExecOptions(container="c", command=command, **options)
        return await self.streams.exec(found["metadata"]["uid"], wanted)

    async def output(self, found: Obj, script: str) -> tuple[int, bytes]:
        """Exit code and standard output of a script in the container."""
        process = await self.exec(found, "sh", "-c", script, stdout=True)
        said = b"".join([chunk async for chunk in process.stdout()])
        code = await process.wait()
        await process.hang_up()
        return code, said


def settings(directory: Path) -> FleetSettings:
    return FleetSettings(
        directory / "pods", backoff=RestartBackoff(first_s=0.05, longest_s=0.2, forgotten_s=60.0)
    )


@contextlib.asynccontextmanager
async def world(directory: Path, changed: FleetSettings | None = None) -> AsyncIterator[World]:
    """Creates a node, unless there is one from an earlier world in the same directory, and waits
    until it is ready."""
    fleet = Fleet(changed or settings(directory))
    directory.chmod(0o700)  # noqa: ASYNC240
    server = build(directory, certificates.ensure(directory), StaticTokens(), fleet)
    try:
        await server.bootstrap(6443)
        made = World(server, fleet)
        with contextlib.suppress(Exception):
            await made.kube.create(NODES, node())
            roots = {"metadata": {"name": "kube-root-ca.crt", "namespace": "default"}}
            await made.kube.create(CONFIG_MAPS, roots | {"data": {"ca.crt": "a certificate"}})
        running = asyncio.ensure_future(fleet.run(made.kube))
        try:
            await made.until_node(is_ready)
            yield made
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    finally:
        server.close()


def timers(directory: Path) -> FleetSettings:
    return replace(settings(directory), runtime="timer")
