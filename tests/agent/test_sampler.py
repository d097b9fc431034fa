"""Readings of a node: what its cards do, and what each container holds of them."""

import asyncio
from pathlib import Path

import pytest

from gpupool.agent import sampler
from gpupool.agent.sampler import Sampler, containers_by_card
from gpupool.agent.settings import AgentSettings
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.hardware.driver import NOTHING_READ, NoDriver, ProgramUse, Uses
from gpupool.hardware.simulated import SimulatedDriver
from kubeclient.objects import Obj

UID = "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"


def pod(name: str, uid: str, **containers: str) -> Obj:
    """`containers`: name -> id."""
    statuses = [{"name": key, "containerID": f"x://{id}"} for key, id in containers.items()]
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": uid},
        "status": {"containerStatuses": statuses},
    }


def found(programs: list[ProgramUse], pods: list[Obj], owners: dict[int, str]) -> object:
    uses = Uses(tuple(programs), frozenset({"GPU-a"}))
    return containers_by_card(
        uses, pods, lambda pid: owners.get(pid, ""), lambda pid: f"id-{owners.get(pid, '')}-{pid}"
    )


def test_memory_is_summed_by_container() -> None:
    pods = [pod("p", "u", main=f"id-u-{1}", side="id-u-3"), pod("q", "v", main="id-v-4")]
    programs = [
        ProgramUse(1, "GPU-a", 100),
        ProgramUse(1, "GPU-b", 10),
        ProgramUse(3, "GPU-a", 30),
        ProgramUse(4, "GPU-a", 40),
        ProgramUse(9, "GPU-a", 90),  # of no pod
    ]
    assert found(programs, pods, {1: "u", 3: "u", 4: "v"}) == {
        "GPU-a": (
            ContainerUse("ns", "p", "main", 100),
            ContainerUse("ns", "p", "side", 30),
            ContainerUse("ns", "q", "main", 40),
        ),
        "GPU-b": (ContainerUse("ns", "p", "main", 10),),
    }


def test_processes_of_one_container_are_added_up() -> None:
    programs = [ProgramUse(pid, "GPU-a", pid) for pid in (1, 2)]
    uses = Uses(tuple(programs), frozenset())
    held = containers_by_card(uses, [pod("p", "u", main="1")], lambda _: "1", lambda _: "1")
    assert held == {"GPU-a": (ContainerUse("ns", "p", "main", 3),)}


def test_a_container_is_looked_for_in_its_own_pod_only() -> None:
    pods = [pod("p", "u", main="id-u-1"), pod("q", "v", main="id-u-7")]
    # The cgroup of the process names pod p and the container of pod q.
    assert found([ProgramUse(7, "GPU-a", 5)], pods, {7: "u"}) == {
        "GPU-a": (ContainerUse("ns", "p", "", 5),)
    }


class Driver(SimulatedDriver):
    def __init__(self, uses: Uses) -> None:
        super().__init__(Path("/none"))
        self.told = uses
        self.times = 0

    async def readings(self) -> tuple[CardReading, ...]:
        self.times += 1
        await asyncio.sleep(0)
        return (CardReading("GPU-a", 1), CardReading("GPU-b", 2), CardReading("GPU-c", 3))

    async def uses(self) -> Uses:
        return self.told


def sampled(uses: Uses) -> Sampler:
    settings = AgentSettings("n", owner=lambda _: "u", container=lambda _: "")
    return Sampler(settings, Driver(uses), [pod("p", "u")])


async def test_what_the_driver_does_not_tell_of_processes_is_unknown() -> None:
    uses = Uses(
        (ProgramUse(1, "GPU-a", 1),), frozenset({"GPU-a", "GPU-b", "GPU-c"}), frozenset({"GPU-c"})
    )
    read = await sampled(uses).readings()
    assert [card.containers for card in read.cards] == [
        (ContainerUse("ns", "p", "", 1),),
        (),
        None,
    ]
    unread = await sampled(NOTHING_READ).readings()
    assert [card.containers for card in unread.cards] == [None, None, None]


async def test_however_many_ask_the_driver_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(NOTHING_READ)
    asked = Sampler(AgentSettings("n"), driver, [])
    await asyncio.gather(*(asked.readings() for _ in range(20)))
    assert driver.times == 1
    monkeypatch.setattr(sampler, "FRESH_S", 0.0)
    await asked.readings()
    assert driver.times == 2


async def test_an_old_reading_is_not_given_for_a_driver_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler, "FRESH_S", 0.0)
    driver = Driver(NOTHING_READ)
    asked = Sampler(AgentSettings("n"), driver, [])
    await asked.readings()

    async def gone() -> tuple[CardReading, ...]:
        raise NoDriver("gone")

    monkeypatch.setattr(driver, "readings", gone)
    with pytest.raises(NoDriver):
        await asked.readings()
