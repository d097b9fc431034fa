"""Pods with devices of their node: admission, restarts, and release."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from kubeclient import names as kube_names
from kubeclient.kubeletapi.messages import Mount
from kubeclient.objects import Obj
from kubeclient.resources import NODES
from localkube.kubelet.node_files import (
    DEVICE_PLUGINS,
    SocketPaths,
    make_private,
    node_disk,
    node_hardware,
)
from localkube.kubelet.node_hooks import NoHooks
from localkube.kubelet.settings import FleetSettings
from localkube.names import DEFAULT as NAMES
from tests.localkube.kubelet.devices.plugin import RESOURCE, FakePlugin
from tests.localkube.kubelet.world import (
    World,
    container,
    is_ready,
    node,
    phase_is,
    settings,
    shell,
    world,
)

DEVICE_NODE = "g0"
TYPE = "machine-with-devices"


class DeviceHooks(NoHooks):
    """Nodes of one type have hardware, and take device plugins."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def node_added(self, node: str, instance_type: str) -> bool:
        if instance_type == TYPE:
            make_private(node_hardware(self._directory, node))
        return instance_type == TYPE


def device_settings(directory: Path) -> FleetSettings:
    made = settings(directory)
    return replace(made, hooks=DeviceHooks(made.directory))


@contextlib.asynccontextmanager
async def device_world(directory: Path) -> AsyncIterator[tuple[World, Path]]:
    """A world with a node for devices, and the directory of its plugins' sockets."""
    async with world(directory, device_settings(directory)) as made:
        made_node = node(DEVICE_NODE)
        made_node["metadata"]["labels"][kube_names.LABEL_INSTANCE_TYPE] = TYPE
        with contextlib.suppress(Exception):
            await made.kube.create(NODES, made_node)
        await made.until_node(is_ready, DEVICE_NODE)
        pods = directory / "pods"
        plugins = SocketPaths(pods).short_path(node_disk(pods, DEVICE_NODE) / DEVICE_PLUGINS)
        async with asyncio.timeout(60):
            while not (plugins / "kubelet.sock").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        yield made, plugins


def asking(name: str, script: str = "sleep 100", count: int = 1, **spec: object) -> Obj:
    limits = {RESOURCE: str(count)}
    more = {"resources": {"limits": limits, "requests": limits}} | dict(
        spec.pop("container", {})  # type: ignore[call-overload]
    )
    return shell(name, script, container=more, nodeName=DEVICE_NODE, **spec)


async def has(found: World, allocatable: int, capacity: int | None = None) -> Obj:
    wanted = str(allocatable), str(allocatable if capacity is None else capacity)

    def reached(obj: Obj) -> bool:
        status = obj["status"]
        return (status["allocatable"].get(RESOURCE), status["capacity"].get(RESOURCE)) == wanted

    return await found.until_node(reached, DEVICE_NODE)


async def test_a_node_counts_what_its_plugins_list(tmp_path: Path) -> None:
    plugin = FakePlugin("t0", "t1")
    async with device_world(tmp_path) as (cluster, plugins):
        async with plugin.registered(plugins):
            await has(cluster, 2)
            plugin.set_health(["t0"], "Unhealthy")
            await has(cluster, 1, capacity=2)
        await has(cluster, 0, capacity=2)


async def test_a_container_gets_what_its_plugin_says_and_its_own_variables_win(
    tmp_path: Path,
) -> None:
    plugin = FakePlugin("t0")
    async with device_world(tmp_path) as (cluster, plugins), plugin.registered(plugins):
        await has(cluster, 1)
        file = node_disk(tmp_path / "pods", DEVICE_NODE) / "opt" / "driver.txt"
        file.parent.mkdir()
        file.write_text("a driver")
        plugin.mounts = (Mount("/usr/share/driver.txt", "/opt/driver.txt", True),)
        env = [{"name": "PLUGIN", "value": "mine, not $(PLUGIN)'s"}]
        found = await cluster.run(asking("p", container={"env": env}))
        _, said = await cluster.output(found, "echo $THINGS $PLUGIN")
        assert said == b"t0 mine, not a's\n"
        _, said = await cluster.output(found, 'cat "$LOCALKUBE_ROOT/usr/share/driver.txt"')
        assert said == b"a driver"


async def test_a_mount_from_outside_of_the_node_is_refused(tmp_path: Path) -> None:
    plugin = FakePlugin("t0")
    plugin.mounts = (Mount("/secrets", str(tmp_path), True),)
    async with device_world(tmp_path) as (cluster, plugins), plugin.registered(plugins):
        await has(cluster, 1)
        found = await cluster.run(
            asking("p"),
            lambda obj: container(obj).get("state", {}).get("waiting", {}).get("message", ""),
        )
        assert "is not on node g0" in container(found)["state"]["waiting"]["message"]


async def test_a_plugin_gives_nobody_write_access_to_the_nodes_hardware(tmp_path: Path) -> None:
    """A pod with a hostPath can register a plugin, too."""
    plugin = FakePlugin("t0")
    hardware = node_hardware(tmp_path / "pods", DEVICE_NODE)
    plugin.mounts = (Mount("/hardware", str(hardware), False),)
    async with device_world(tmp_path) as (cluster, plugins), plugin.registered(plugins):
        await has(cluster, 1)
        (hardware / "state").write_text("all is well")
        found = await cluster.run(asking("p"))
        write = 'cd "$LOCALKUBE_ROOT/hardware"; echo bad > state; rm state; cat state; true'
        _, said = await cluster.output(found, write)
        assert b"all is well" in said
    assert (hardware / "state").read_text() == "all is well"


async def test_a_pod_without_free_devices_fails_with_the_kubelets_message(tmp_path: Path) -> None:
    async with device_world(tmp_path) as (cluster, plugins), FakePlugin("t0").registered(plugins):
        await has(cluster, 1)
        await cluster.run(asking("first"))
        found = await cluster.run(asking("second"), phase_is("Failed"))
        words = (
            "Allocate failed due to requested number of devices unavailable for "
            "example.com/thing. Requested: 1, Available: 0, which is unexpected"
        )
        assert found["status"]["reason"] == "UnexpectedAdmissionError"
        assert found["status"]["message"] == f"Pod was rejected: {words}"
        event = await cluster.until_event("UnexpectedAdmissionError", "second")
        assert event["message"] == words


async def test_devices_are_given_back_when_a_pod_ends(tmp_path: Path) -> None:
    plugin = FakePlugin("t0")
    async with device_world(tmp_path) as (cluster, plugins), plugin.registered(plugins):
        await has(cluster, 1)
        await cluster.run(asking("done", "true", restartPolicy="Never"), phase_is("Succeeded"))
        await cluster.run(asking("deleted"))
        await cluster.delete("deleted", 0)
        await cluster.until_gone("deleted")
        await cluster.run(asking("last"))
        assert plugin.allocated == [(("t0",),)] * 3


async def test_timers_get_devices_too(tmp_path: Path) -> None:
    plugin = FakePlugin("t0")
    timer = {NAMES.runtime_annotation: "timer", NAMES.run_seconds_annotation: "0"}
    async with device_world(tmp_path) as (cluster, plugins), plugin.registered(plugins):
        await has(cluster, 1)
        for name in ("p", "q"):
            given = asking(name, annotations=timer, restartPolicy="Never")
            await cluster.run(given, phase_is("Succeeded"))
        assert plugin.allocated == [(("t0",),)] * 2


async def test_a_pod_waits_for_a_plugin_that_may_come_back(tmp_path: Path) -> None:
    async with device_world(tmp_path) as (cluster, plugins):
        async with FakePlugin("t0").registered(plugins):
            await has(cluster, 1)
        await has(cluster, 0, capacity=1)
        await cluster.create(asking("p"))
        await cluster.until_event("DevicePluginAway", "p")
        async with FakePlugin("t0", name="b").registered(plugins):
            await cluster.until("p", is_ready)


async def test_pods_keep_their_devices_when_kubelet_and_plugin_start_anew(tmp_path: Path) -> None:
    plugin = FakePlugin("t0", "t1", "t2")
    plugin.preferred = ("t2", "t0", "t1")
    async with device_world(tmp_path) as (cluster, plugins), plugin.registered(plugins):
        await has(cluster, 3)
        await cluster.run(asking("p"))
        await cluster.run(asking("q"))
    plugin.preferred = ()
    async with device_world(tmp_path) as (cluster, plugins):
        again = [await cluster.until(name, _runs_again) for name in ("p", "q")]
        assert [await _things(cluster, found) for found in again] == [b"t2\n", b"t0\n"]
        async with plugin.registered(plugins):
            await has(cluster, 3)
            found = await cluster.run(asking("r"))
            assert await _things(cluster, found) == b"t1\n"


def _runs_again(found: Obj) -> bool:
    return is_ready(found) and container(found)["restartCount"] == 1


async def _things(cluster: World, found: Obj) -> bytes:
    return (await cluster.output(found, "echo $THINGS"))[1]


async def test_nothing_is_left_of_a_node_that_is_gone(tmp_path: Path) -> None:
    async with device_world(tmp_path) as (cluster, plugins):
        assert (plugins / "kubelet.sock").exists()
        assert list((tmp_path / "pods" / "hardware").iterdir())
        await cluster.kube.delete(NODES, DEVICE_NODE)
        async with asyncio.timeout(60):
            for kind in ("nodes", "hardware"):
                while list((tmp_path / "pods" / kind).iterdir()):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
