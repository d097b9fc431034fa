import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from kubeclient.kubeletapi.calling import channel_to
from kubeclient.kubeletapi.errors import Refusal, RpcFailed
from kubeclient.kubeletapi.messages import (
    API_VERSION,
    ContainerDevices,
    ContainerResources,
    PodResources,
    RegisterRequest,
)
from localkube.kubelet.devices import checkpoint
from localkube.kubelet.devices.grants import DeviceRequest
from localkube.kubelet.devices.node_devices import NodeDevices, NotYet, SocketDirectories
from tests.localkube.kubelet.devices.plugin import RESOURCE, FakePlugin, register


class Node:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._changed = asyncio.Event()
        places = SocketDirectories(directory, directory / "r")
        places.pod_resources.mkdir(exist_ok=True)
        self.devices = NodeDevices(places, self._changed.set, {"p": ("ns", "pod")}.get)

    async def until(self, allocatable: int, capacity: int | None = None) -> None:
        wanted = (allocatable, allocatable if capacity is None else capacity)
        async with asyncio.timeout(60):
            while self.counts() != wanted:
                self._changed.clear()
                await self._changed.wait()

    def counts(self) -> tuple[int, int]:
        counts = self.devices.counts()
        return counts.allocatable.get(RESOURCE, -1), counts.capacity.get(RESOURCE, -1)

    def env(self, pod: str, container: str = "c") -> str:
        return self.devices.response(pod, container).envs.get("THINGS", "")


async def test_pod_resources_lists_the_devices_of_each_container(tmp_path: Path) -> None:
    async with (
        node(tmp_path) as kubelet,
        FakePlugin("t0", "t1").registered(tmp_path),
        channel_to(tmp_path / "r" / "kubelet.sock") as channel,
    ):
        await kubelet.until(2)
        assert await kubelet.devices.admit("p", [request(1)]) is None
        assert await kubelet.devices.admit("gone", [request(1)]) is None
        devices = (ContainerDevices(RESOURCE, ("t0",)),)
        pods = (PodResources("pod", "ns", (ContainerResources("c", devices),)),)
        assert (await channel.pod_resources()).pods == pods
        assert (await channel.allocatable()).devices == (ContainerDevices(RESOURCE, ("t0", "t1")),)


@contextlib.asynccontextmanager
async def node(directory: Path) -> AsyncIterator[Node]:
    made = Node(directory)
    running = asyncio.ensure_future(made.devices.run())
    try:
        async with asyncio.timeout(60):
            while not (directory / "kubelet.sock").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        yield made
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def request(count: int, container: str = "c", *, gives_back: bool = False) -> DeviceRequest:
    return DeviceRequest(container, {RESOURCE: count}, gives_back)


async def test_unhealthy_devices_count_for_capacity_but_not_for_allocatable(tmp_path: Path) -> None:
    plugin = FakePlugin("t0", "t1", "t2")
    async with node(tmp_path) as kubelet, plugin.registered(tmp_path):
        await kubelet.until(3)
        plugin.set_health(["t1"], "Unhealthy")
        await kubelet.until(2, capacity=3)
        plugin.set_health(["t1"], "Healthy")
        await kubelet.until(3)


async def test_a_plugin_that_goes_away_leaves_its_capacity(tmp_path: Path) -> None:
    async with node(tmp_path) as kubelet:
        async with FakePlugin("t0").registered(tmp_path):
            await kubelet.until(1)
        await kubelet.until(0, capacity=1)
        with pytest.raises(NotYet):
            await kubelet.devices.admit("p", [request(1)])
        async with FakePlugin("t0", name="b").registered(tmp_path):
            await kubelet.until(1)
            assert await kubelet.devices.admit("p", [request(1)]) is None


async def test_a_newer_plugin_takes_over_without_a_gap(tmp_path: Path) -> None:
    seen = []
    async with node(tmp_path) as kubelet, contextlib.AsyncExitStack() as newer:
        async with FakePlugin("t0").registered(tmp_path):
            await kubelet.until(1)
            kubelet.devices._changed = lambda: seen.append(kubelet.counts())
            await newer.enter_async_context(FakePlugin("t0", name="b").registered(tmp_path))
        assert await kubelet.devices.admit("p", [request(1)]) is None
        assert kubelet.devices.response("p", "c").envs["PLUGIN"] == "b"
        assert (0, 1) not in seen


async def test_a_plugin_that_registers_again_replaces_itself_without_a_gap(tmp_path: Path) -> None:
    """As NVIDIA's does when it reads its configuration again, and as Kubernetes 1.35 takes it."""
    plugin, seen = FakePlugin("t0"), []
    async with node(tmp_path) as kubelet, plugin.registered(tmp_path):
        await kubelet.until(1)
        kubelet.devices._changed = lambda: seen.append(kubelet.counts())
        for _ in range(3):
            await register(tmp_path, endpoint="a.sock")
        while plugin.streams != 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert await kubelet.devices.admit("p", [request(1)]) is None
        assert (seen, kubelet.counts()) == ([], (1, 1))


async def test_a_plugin_that_starts_anew_at_its_socket_is_listened_to(tmp_path: Path) -> None:
    """The old one has removed its socket, and still serves the connection that it has."""
    async with node(tmp_path) as kubelet, FakePlugin("t0").registered(tmp_path):
        await kubelet.until(1)
        (tmp_path / "a.sock").unlink()
        async with FakePlugin("t0", "t1").registered(tmp_path):
            await kubelet.until(2)
            assert await kubelet.devices.admit("p", [request(2)]) is None
        await kubelet.until(0, capacity=2)


@pytest.mark.parametrize(
    ("request_of", "words"),
    [
        (
            {"version": "v1alpha"},
            'requested API version "v1alpha" is not supported by kubelet. '
            'Supported version is ["v1beta1"]',
        ),
        ({"resource": "thing"}, 'the ResourceName "thing" is invalid'),
        ({"resource": "kubernetes.io/thing"}, 'the ResourceName "kubernetes.io/thing" is invalid'),
        ({"resource": "a b/thing"}, 'the ResourceName "a b/thing" is invalid'),
        ({"endpoint": "../x.sock"}, "is not the name of a file"),
        ({"endpoint": ""}, "is not the name of a file"),
    ],
)
async def test_a_registration_that_makes_no_sense_is_refused(
    tmp_path: Path, request_of: dict[str, str], words: str
) -> None:
    async with node(tmp_path), FakePlugin("t0").serving(tmp_path):
        with pytest.raises(RpcFailed) as refused:
            await register(tmp_path, **{"endpoint": "a.sock"} | request_of)
        assert words in str(refused.value)


async def test_a_plugin_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    async with node(tmp_path):
        with pytest.raises(RpcFailed, match="failed to connect to device plugin"):
            await register(tmp_path, endpoint="nobody.sock")


async def test_each_container_is_asked_for_by_itself(tmp_path: Path) -> None:
    plugin = FakePlugin("t0", "t1", "t10", "t2")
    async with node(tmp_path) as kubelet, plugin.registered(tmp_path):
        await kubelet.until(4)
        assert await kubelet.devices.admit("p", [request(2, "a"), request(1, "b")]) is None
        assert plugin.allocated == [(("t0", "t1"),), (("t2",),)]
        assert (kubelet.env("p", "a"), kubelet.env("p", "b")) == ("t0,t1", "t2")


async def test_containers_take_over_what_init_containers_had(tmp_path: Path) -> None:
    plugin = FakePlugin("t0", "t1")
    async with node(tmp_path) as kubelet, plugin.registered(tmp_path):
        await kubelet.until(2)
        asks = [request(2, "init", gives_back=True), request(1, "sidecar"), request(1, "main")]
        assert await kubelet.devices.admit("p", asks) is None
        assert kubelet.env("p", "init") == "t0,t1"
        assert {kubelet.env("p", "sidecar"), kubelet.env("p", "main")} == {"t0", "t1"}


async def test_the_preferred_devices_of_the_plugin_are_used(tmp_path: Path) -> None:
    plugin = FakePlugin("t0", "t1", "t2")
    plugin.preferred = ("t2", "nonsense")
    async with node(tmp_path) as kubelet, plugin.registered(tmp_path):
        await kubelet.until(3)
        assert await kubelet.devices.admit("p", [request(2)]) is None
        assert kubelet.env("p") == "t2,t0"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda plugin: None,
            "requested number of devices unavailable for example.com/thing. "
            "Requested: 2, Available: 1",
        ),
        (
            lambda plugin: plugin.set_health(["t0"], "Unhealthy"),
            "no healthy devices present; cannot allocate unhealthy devices example.com/thing",
        ),
    ],
)
async def test_a_failed_allocation_has_the_kubelets_message(
    tmp_path: Path, change: Callable[[FakePlugin], None], words: str
) -> None:
    plugin = FakePlugin("t0")
    async with node(tmp_path) as kubelet, plugin.registered(tmp_path):
        await kubelet.until(1)
        change(plugin)
        await kubelet.until(sum(each == "Healthy" for each in plugin.health.values()), capacity=1)
        found = await kubelet.devices.admit("p", [request(2)])
        assert found == f"Allocate failed due to {words}, which is unexpected"


async def test_a_refusal_of_the_plugin_leaves_nothing_taken(tmp_path: Path) -> None:
    plugin = FakePlugin("t0", "t1")
    async with node(tmp_path) as kubelet, plugin.registered(tmp_path):
        await kubelet.until(2)
        assert await kubelet.devices.admit("p", [request(1, "a")]) is None
        plugin.refusal = "not today"
        found = await kubelet.devices.admit("q", [request(1, "a")])
        assert found == (
            "Allocate failed due to rpc error: code = Unknown desc = not today, which is unexpected"
        )
        plugin.refusal = ""
        assert await kubelet.devices.admit("r", [request(1, "a")]) is None


async def test_devices_of_a_deleted_pod_are_free_for_the_next(tmp_path: Path) -> None:
    async with node(tmp_path) as kubelet, FakePlugin("t0").registered(tmp_path):
        await kubelet.until(1)
        assert await kubelet.devices.admit("p", [request(1)]) is None
        assert await kubelet.devices.admit("q", [request(1)]) is not None
        kubelet.devices.release("p")
        assert await kubelet.devices.admit("q", [request(1)]) is None
        assert (kubelet.env("p"), kubelet.env("q")) == ("", "t0")


async def test_pods_keep_their_devices_over_a_restart(tmp_path: Path) -> None:
    plugin = FakePlugin("t0", "t1")
    async with node(tmp_path) as kubelet, plugin.registered(tmp_path):
        await kubelet.until(2)
        assert await kubelet.devices.admit("p", [request(1)]) is None
        assert await kubelet.devices.admit("q", [request(1)]) is None
    async with node(tmp_path) as kubelet:
        assert kubelet.counts() == (0, 0)  # until the plugin is back
        assert await kubelet.devices.admit("p", [request(1)]) is None
        assert (kubelet.env("p"), kubelet.env("q")) == ("t0", "t1")
        kubelet.devices.release_all_but({"q"}.__contains__)
        with pytest.raises(NotYet):
            await kubelet.devices.admit("r", [request(1)])
        async with plugin.registered(tmp_path):
            await kubelet.until(2)
            assert await kubelet.devices.admit("r", [request(1)]) is None
            assert (kubelet.env("r"), kubelet.env("q")) == ("t0", "t1")
            assert len(plugin.allocated) == 3  # Allocate was not called again for p and q


@pytest.mark.parametrize("damage", [b"", b"{", b'{"Data": {}, "Checksum": 1}', b"[]"])
async def test_a_damaged_checkpoint_counts_as_none(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "kubelet_internal_checkpoint").write_bytes(damage)
    async with node(tmp_path) as kubelet, FakePlugin("t0").registered(tmp_path):
        await kubelet.until(1)
        assert await kubelet.devices.admit("p", [request(1)]) is None


_ENTRY = {
    "PodUID": "p",
    "ContainerName": "c",
    "ResourceName": RESOURCE,
    "DeviceIDs": {"-1": ["t0"]},
    "AllocResp": "",
}


@pytest.mark.parametrize(
    ("entry", "registered"),
    [
        ({"DeviceIDs": []}, {}),
        ({"DeviceIDs": {"-1": [["t0"]]}}, {}),
        ({"PodUID": ["p"]}, {}),
        ({"ResourceName": "cpu"}, {"cpu": [], "x": [], "kubernetes.io/x": []}),
        ({"AllocResp": "/////w=="}, {}),
        ({}, [["x"]]),
        ({}, {RESOURCE: 3}),
    ],
)
async def test_a_checkpoint_that_a_pod_wrote_stops_no_node(
    tmp_path: Path, entry: dict[str, Any], registered: Any
) -> None:
    """The checksum is no secret."""
    data = {"PodDeviceEntries": [_ENTRY | entry], "RegisteredDevices": registered}
    text = orjson.dumps({"Data": data, "Checksum": checkpoint._sum(data)})
    (tmp_path / checkpoint.NAME).write_bytes(text)
    devices = Node(tmp_path).devices
    assert (devices.counts().capacity, devices._grants.pods()) == ({}, frozenset())


async def test_a_checkpoint_brings_no_more_resources_than_plugins_may_have(tmp_path: Path) -> None:
    checkpoint.write(tmp_path, (), {f"example.com/r{number}": [] for number in range(1000)})
    assert len(Node(tmp_path).devices.counts().capacity) == 64


async def test_a_resource_without_a_plugin_is_ignored(tmp_path: Path) -> None:
    async with node(tmp_path) as kubelet:
        assert await kubelet.devices.admit("p", [request(1)]) is None
        assert kubelet.env("p") == ""


async def test_plugins_hear_of_a_start_if_they_want_to(tmp_path: Path) -> None:
    plugin = FakePlugin("t0")
    plugin.pre_start = True
    async with node(tmp_path) as kubelet, plugin.registered(tmp_path):
        await kubelet.until(1)
        assert await kubelet.devices.admit("p", [request(1)]) is None
        await kubelet.devices.pre_start("p", "c")
        await kubelet.devices.pre_start("p", "c")
        assert plugin.pre_started == [("t0",), ("t0",)]


async def test_plugins_that_never_answer_are_counted_too(tmp_path: Path) -> None:
    """Each has a connection of the whole server's, also when its caller has hung up."""
    async with node(tmp_path) as kubelet:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(tmp_path / "silent.sock"))
            silent.listen(100)
            calls = [
                asyncio.ensure_future(
                    kubelet.devices.register(
                        RegisterRequest(API_VERSION, "silent.sock", f"example.com/r{number}")
                    )
                )
                for number in range(100)
            ]
            await asyncio.sleep(0.1)
            assert sum(call.done() for call in calls) == 36
            with pytest.raises(Refusal, match="64 resources already"):
                await calls[-1]
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            with pytest.raises(Refusal, match="64 resources already"):
                await kubelet.devices.register(
                    RegisterRequest(API_VERSION, "silent.sock", "example.com/last")
                )
