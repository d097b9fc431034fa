"""Readings of a node: what its cards do, and what each container holds of them."""

import asyncio
import time
from pathlib import Path

import pytest

from gpupool.agent import sampler
from gpupool.agent.sampler import Sampler
from gpupool.agent.settings import AgentSettings
from gpupool.contract.allocation import allocation_text
from gpupool.contract.names import ANNOTATION_ALLOCATION
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Inventory, Isolation
from gpupool.core.readings import CardReading
from gpupool.hardware.driver import NOTHING_READ, Loads, NoDriver, ProgramUse, Uses
from gpupool.hardware.simulated import SimulatedDriver
from kubeclient.mirror import Changed, Mirror
from kubeclient.mirror_faults import Broke
from kubeclient.objects import Obj


def pod(name: str, uid: str) -> Obj:
    return {"metadata": {"namespace": "ns", "name": name, "uid": uid}}


class Driver(SimulatedDriver):
    def __init__(self, uses: Uses) -> None:
        super().__init__(Path("/none"))
        self.told = uses
        self.times = 0
        self.since: list[int] = []

    async def readings(self) -> tuple[CardReading, ...]:
        self.times += 1
        await asyncio.sleep(0)
        return (CardReading("GPU-a", 1), CardReading("GPU-b", 2), CardReading("GPU-c", 3))

    async def uses(self) -> Uses:
        return self.told

    async def loads(self, since_us: int) -> Loads:
        self.since.append(since_us)
        return Loads((), frozenset())


class Changes(Mirror):
    """Of pods, told by a test."""

    def __init__(self) -> None:
        self.tell: Changed = lambda old, new: None

    def on_change(self, callback: Changed, broke: Broke | None = None) -> None:
        self.tell = callback


def sampler_of(driver: Driver) -> Sampler:
    settings = AgentSettings("n", owner=lambda _: "u", container=lambda _: "")
    return Sampler(settings, driver, Inventory)


def sampled(uses: Uses, *pods: Obj) -> Sampler:
    made = sampler_of(Driver(uses))
    for each in pods:
        made.pod_changed(None, each)
    return made


async def test_what_the_driver_does_not_tell_of_processes_is_unknown() -> None:
    cards = frozenset({"GPU-a", "GPU-b", "GPU-c"})
    programs = (ProgramUse(1, "GPU-a", 1), ProgramUse(1, "GPU-c", 2))
    uses = Uses(programs, cards, frozenset({"GPU-c"}))
    read = await sampled(uses, pod("p", "u")).readings()
    found = [
        [(use.pod, use.memory_used_mib) for use in card.containers or ()] for card in read.cards
    ]
    assert found == [[("p", 1)], [], [("p", None)]]


async def test_a_pod_that_is_gone_uses_nothing() -> None:
    uses = Uses((ProgramUse(1, "GPU-a", 1),), frozenset({"GPU-a"}))
    made = sampled(uses, pod("p", "u"))
    made.pod_changed(pod("p", "u"), None)
    assert [card.containers for card in (await made.readings()).cards] == [(), (), ()]


async def test_however_many_ask_the_driver_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(NOTHING_READ)
    asked = sampler_of(driver)
    await asyncio.gather(*(asked.readings() for _ in range(20)))
    assert driver.times == 1
    monkeypatch.setattr(sampler, "FRESH_S", 0.0)
    await asked.readings()
    assert driver.times == 2
    # Each asks for what was computed since the sample before.
    assert driver.since[0] == 0
    assert 0 < driver.since[1] <= time.time_ns() // 1000


async def test_it_samples_while_a_pod_has_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "FRESH_S", 0.0)
    driver = Driver(NOTHING_READ)
    made = Sampler(AgentSettings("n", sample_s=0.001), driver, Inventory)
    pods = Changes()
    running = asyncio.create_task(made.run(pods))
    await asyncio.sleep(0.02)
    assert driver.times == 0
    holder = pod("p", "u")
    share = CardShare("GPU-a", 0, 3, 3000, 15)
    allocation = Allocation((ContainerGpus("main", (share,), Isolation.LIMIT),))
    holder["metadata"]["annotations"] = {ANNOTATION_ALLOCATION: allocation_text(allocation)}
    pods.tell(None, holder)
    async with asyncio.timeout(60):
        while driver.times < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    running.cancel()
    [use] = (await made.readings()).cards[0].containers or ()
    assert (use.pod, use.memory_request_mib, use.memory_used_mib) == ("p", 3000, None)


async def test_an_old_reading_is_not_given_for_a_driver_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler, "FRESH_S", 0.0)
    driver = Driver(NOTHING_READ)
    asked = sampler_of(driver)
    await asked.readings()

    async def gone() -> tuple[CardReading, ...]:
        raise NoDriver("gone")

    monkeypatch.setattr(driver, "readings", gone)
    with pytest.raises(NoDriver):
        await asked.readings()
