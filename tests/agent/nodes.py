"""A node for the agent: an API server, a kubelet that records what it receives, and cards."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from gpupool.agent.run import run_agent
from gpupool.agent.settings import AgentSettings
from gpupool.core.ways import Way
from gpupool.hardware.simdriver import NodeFiles, inject
from gpupool.hardware.simdriver_cards import CardProfile, card_profile
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_state import Driver, new_state
from gpupool.hardware.simulated import SimulatedDriver
from kubeclient.client import MERGE_PATCH, Kube
from kubeclient.kubeletapi.calling import Channel, channel_to
from kubeclient.kubeletapi.errors import RpcFailed
from kubeclient.kubeletapi.messages import HEALTHY, Device, RegisterRequest
from kubeclient.kubeletapi.serving import registration_service, serving
from kubeclient.objects import Obj
from kubeclient.resources import EVENTS, NODES

NAME = "node-1"
M40 = card_profile("Tesla M40", 12209)
V100 = card_profile("Tesla V100-SXM2-16GB", 16130)

LIMIT_S = 20.0


class Kubelet:
    """Follows every plugin that registers, as a kubelet does; counts what they offer."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.registered: list[RegisterRequest] = []
        self.lists: list[tuple[str, int, int]] = []  # resource, devices, healthy ones
        self.counts: dict[str, tuple[int, int]] = {}  # resource: devices, healthy ones
        self._devices: dict[str, tuple[Device, ...]] = {}
        self._plugins: dict[str, Channel] = {}
        self._following = set[asyncio.Task[None]]()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Removes every socket of the directory first, as a kubelet does when it starts."""
        for path in self.directory.glob("*.sock"):
            path.unlink()
        self.counts.clear()
        service = registration_service(self._register)
        async with serving(self.directory / "kubelet.sock", [service]):
            try:
                yield
            finally:
                for task in self._following:
                    task.cancel()
                await asyncio.gather(*self._following, return_exceptions=True)

    def plugin(self, resource: str) -> Channel:
        return self._plugins[resource]

    def unhealthy(self, resource: str) -> set[str]:
        return {device.id for device in self._devices[resource] if device.health != HEALTHY}

    async def _register(self, request: RegisterRequest) -> None:
        self.registered.append(request)
        task = asyncio.create_task(self._follow(request))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow(self, request: RegisterRequest) -> None:
        resource = request.resource_name
        with contextlib.suppress(RpcFailed):
            async with channel_to(self.directory / request.endpoint) as channel:
                self._plugins[resource] = channel
                async for answer in channel.list_and_watch():
                    self._devices[resource] = answer.devices
                    healthy = [d for d in answer.devices if d.health == HEALTHY]
                    self.counts[resource] = len(answer.devices), len(healthy)
                    self.lists.append((resource, *self.counts[resource]))


class Node:
    def __init__(self, people: Kube, agent: Kube, directory: Path) -> None:
        self.kube = people
        self.agent_kube = agent
        self.files = NodeFiles(directory / "driver")
        self.plugins = directory / "plugins"
        self.plugins.mkdir()
        self.files.directory.mkdir()
        self.kubelet = Kubelet(self.plugins)

    async def create(self, labels: dict[str, str] | None = None) -> None:
        metadata = {"name": NAME, "labels": labels or {}}
        await self.kube.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})

    def insert(self, cards: Sequence[CardProfile]) -> None:
        """Replaces the cards, as a reboot of the machine does."""
        made = self.files.state.with_name("new")
        made.write_bytes(bytes(new_state(NAME, cards, Driver())))
        made.rename(self.files.state)

    def fault(self, card: int, text: str) -> None:
        inject(self.files, card, parse_fault(text))

    def settings(self, **changes: Any) -> AgentSettings:
        given: dict[str, Any] = {
            "node": NAME,
            "plugins": self.plugins,
            "pod_resources": self.plugins / "pod-resources.sock",
            "look_s": 0.02,
            "way": Way.RUNTIME,
        }
        return AgentSettings(**(given | changes))

    @contextlib.asynccontextmanager
    async def agent(
        self, driver: SimulatedDriver | None = None, **changes: Any
    ) -> AsyncIterator[None]:
        driver = driver or SimulatedDriver(self.files.state)
        task = asyncio.create_task(run_agent(self.settings(**changes), driver, self.agent_kube))
        try:
            yield
        finally:
            assert not task.done(), task.exception()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def get(self) -> Obj:
        return await self.kube.get(NODES, NAME)

    async def patch(self, metadata: Obj) -> None:
        path = NODES.path(name=NAME)
        await self.kube.patch(path, {"metadata": metadata}, content_type=MERGE_PATCH)

    async def labels(self) -> dict[str, str]:
        return (await self.get())["metadata"].get("labels") or {}

    async def events(self) -> list[tuple[str, str]]:
        found = (await self.kube.list(EVENTS)).items
        return [(event["reason"], event["message"]) for event in found]

    async def wait(self, is_so: Callable[[], Any]) -> None:
        """Waits until the condition, plain or async, holds."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                found = is_so()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return
                await asyncio.sleep(0.01)

    async def wait_labels(self, **wanted: str | None) -> None:
        """Labels are given by the last part of their names."""

        async def are_so() -> bool:
            labels = {key.rpartition("/")[2]: value for key, value in (await self.labels()).items()}
            return all(labels.get(key) == value for key, value in wanted.items())

        await self.wait(are_so)

    async def wait_event(self, reason: str) -> str:
        messages: list[str] = []

        async def is_there() -> bool:
            messages[:] = [text for found, text in await self.events() if found == reason]
            return bool(messages)

        await self.wait(is_there)
        return messages[-1]
