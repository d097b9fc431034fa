"""What the agent says of walls: inventory, label, events, metrics; and when a share has shrunk."""

import asyncio
import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from gpupool.agent.leaves import ContainerLeaves
from gpupool.agent.light_pods import LightPods
from gpupool.agent.metrics import Metrics
from gpupool.agent.pod_files import kubelet_volumes
from gpupool.agent.shrinks import IN_FORCE_S, Shrinks
from gpupool.agent.wall_keeper import REASON, WallKeeper
from gpupool.agent.walls import Walls
from gpupool.contract.inventory import inventory_of
from gpupool.contract.names import ANNOTATION_INVENTORY, GROUP_LIMITS, LABEL_ISOLATION
from gpupool.core.gpu import Card, Inventory, Wall
from gpupool.hardware.memory_limits import LimitsRefused, MemoryLimits
from gpupool.hardware.simdriver import NodeFiles, read_cards
from gpupool.hardware.simdriver_state import Driver, new_state
from gpupool.hardware.simulated_limits import SimulatedLimits
from kubeclient.client import Kube
from kubeclient.events import Recorder
from kubeclient.kubeletapi.messages import Mount
from kubeclient.mirror import Mirror, key_of
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from tests.agent.nodes import NAME, V100, Node
from tests.agent.test_shrinks import Files, pod

CONTAINER = "c0ffee"
WALLED = Driver("615.71.09", 13040)
SHARED = {"cgpu": "true", "cgpu.disable.isolation": "false"}


def limits_text(uuid: str, mib: int = 1024) -> str:
    return f"{uuid} {mib} 0\n"


def running(uuid: str, mib: int = 1024) -> Obj:
    made = pod()
    made["metadata"]["annotations"][f"{GROUP_LIMITS}/c"] = limits_text(uuid, mib)
    made["status"] = {
        "containerStatuses": [
            {"name": "c", "containerID": f"x://{CONTAINER}", "state": {"running": {}}}
        ]
    }
    return made


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    made = NodeFiles(tmp_path / "driver")
    made.container("u", CONTAINER).mkdir(parents=True)
    made.state.write_bytes(bytes(new_state(NAME, [V100], WALLED)))
    return made


def keeper_of(files: NodeFiles) -> WallKeeper:
    recorder = Recorder(Kube.__new__(Kube), "agent", lambda: datetime.datetime.now(datetime.UTC))
    walls = Walls(SimulatedLimits(files.state), ContainerLeaves(files.containers))
    return WallKeeper(NAME, walls, recorder)


def inventory(files: NodeFiles) -> Inventory:
    card = read_cards(files)[0]
    return Inventory((Card(0, card.uuid, card.name, card.memory_mib),), isolates=True)


async def test_a_lowered_limit_is_confirmed_only_when_the_driver_holds_it_too(
    files: NodeFiles, tmp_path: Path
) -> None:
    uuid = read_cards(files)[0].uuid
    keeper = keeper_of(files)
    volumes = Files(tmp_path / "pods")
    shrinks = Shrinks(kubelet_volumes(tmp_path / "pods"), keeper)
    await keeper._sweep([running(uuid, 2048)], inventory(files))
    assert keeper.others == ()
    volumes.limits.write_text(limits_text(uuid))
    lowered = running(uuid)
    for now_s in (0, 10):  # the limiter has it, the driver has not
        assert shrinks.reports([lowered], now_s) == {}
    await keeper._sweep([lowered], inventory(files))
    assert shrinks.reports([lowered], 20) == {}
    found = shrinks.reports([lowered], 20.1 + IN_FORCE_S)
    assert found["u"].used_mib == {"c": {uuid: 0}}


async def test_what_the_driver_refuses_is_held_by_the_limiter_and_can_shrink(
    files: NodeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = read_cards(files)[0].uuid
    keeper = keeper_of(files)
    await keeper._sweep([], inventory(files))
    assert keeper.wall(True) is Wall.DRIVER

    def refuse(*_: object) -> None:
        raise LimitsRefused("busy")

    monkeypatch.setattr(SimulatedLimits, "set", refuse)
    told: list[str] = []
    monkeypatch.setattr(
        Recorder, "event", lambda _, obj, kind, reason, words, host: told.append(words)
    )
    for _ in range(2):
        await keeper._sweep([running(uuid)], inventory(files))
    assert keeper.others == (("u", Wall.LIMITER),)
    assert keeper.agrees(running(uuid))
    words = "the driver does not hold it to its share, only the limiter does: busy"
    assert told == [words]
    assert REASON == "NotHeldByDriver"


def test_without_a_driver_that_has_limits_the_limiter_is_the_wall(tmp_path: Path) -> None:
    keeper = keeper_of(NodeFiles(tmp_path))
    assert keeper.wall(True) is Wall.LIMITER
    assert keeper.wall(False) is Wall.NONE
    assert keeper.wall(None) is None


async def test_an_agent_on_a_node_with_driver_limits_publishes_which_wall_holds_its_pods(
    node: Node,
) -> None:
    await node.create(SHARED)
    node.files.state.write_bytes(bytes(new_state(NAME, [V100], WALLED)))
    uuid = read_cards(node.files)[0].uuid
    wanted = running(uuid) | {"apiVersion": "v1", "kind": "Pod"}
    status = wanted.pop("status")
    made = await node.kube.create(PODS, wanted)
    leaf = node.files.container(made["metadata"]["uid"], CONTAINER)
    leaf.mkdir(parents=True)
    path = PODS.path("default", "p")
    await node.kube.patch(f"{path}/status", {"status": status})
    limits = SimulatedLimits(node.files.state)
    walls = Walls(limits, ContainerLeaves(node.files.containers))
    async with node.agent(walls=walls, limiter=(Mount("/l", "/l", read_only=True),)):

        async def is_held() -> bool:
            metadata = (await node.get())["metadata"]
            text = metadata.get("annotations", {}).get(ANNOTATION_INVENTORY)
            found = inventory_of(text) if text else Inventory()
            label = metadata["labels"].get(LABEL_ISOLATION)
            return (found.wall, found.other_walls, label) == (Wall.DRIVER, (), "driver")

        await node.wait(is_held)
        share = MemoryLimits(1024 << 20, 1024 << 20)
        await node.wait(lambda: limits.get(str(leaf), uuid).limits == share)

        async def is_said() -> bool:
            return "DriverHoldsShares" in {reason for reason, _ in await node.events()}

        await node.wait(is_said)


def test_the_wall_of_each_pod_is_a_metric() -> None:
    metrics = Metrics(NAME, walls={("default", "p", "driver"): 1})
    labels = f'isolation="driver",namespace="default",node="{NAME}",pod="p"'
    line = f"gpupool_pod_isolation{{{labels}}} 1.0"
    assert line in metrics.text().splitlines()


async def test_without_limits_of_the_driver_pods_are_swept_when_something_changes(
    files: NodeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpupool.agent.wall_keeper._SWEEP_S", 0.0)
    sweeps: list[int] = []

    async def sweep(_: WallKeeper, pods: list[Obj], __: Inventory) -> None:
        sweeps.append(len(pods))

    monkeypatch.setattr(WallKeeper, "_sweep", sweep)
    mirror = Mirror(Kube.__new__(Kube), PODS)
    mirror._synced.set()
    known = inventory(files)
    keeper = WallKeeper(NAME, None, Recorder.__new__(Recorder))
    work = keeper.run(LightPods(mirror), lambda: known, Metrics(NAME), lambda: None)
    running_on = asyncio.create_task(work)

    async def turns() -> list[int]:
        for _ in range(50):
            await asyncio.sleep(0)
        return sweeps

    assert await turns() == [0]
    made = running(known.cards[0].uuid)
    mirror._put(key_of(made), made)
    assert await turns() == [0, 1]
    known = replace(known, isolates=False)
    assert await turns() == [0, 1, 1]
    running_on.cancel()
