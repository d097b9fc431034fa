"""Two schedulers at once, as processes: all that fits is bound, and no card is given out twice.

Checked by the sum of the shares in the pods' annotations, independently of any scheduler.
"""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from tests.scheduler.processes import Process, leader, schedulers, served
from tests.scheduler.world import (
    CARD_UNITS,
    add_node,
    add_pods,
    assert_no_card_over,
    bound,
    gpu_pod,
    units_by_card,
)

HALF = CARD_UNITS // 2
PATIENCE_S = 90.0


def halves(prefix: str, count: int, name: str) -> list[Obj]:
    return [gpu_pod(f"{prefix}{i}", units=HALF, schedulerName=name) for i in range(count)]


@pytest.mark.parametrize("names", [("one", "one"), ("one", "other")])
async def test_sixteen_halves_fill_eight_cards(tmp_path: Path, names: tuple[str, str]) -> None:
    async with served(tmp_path) as (kube, config):
        await add_node(kube, "n", 8)
        with schedulers(config, *names):
            for number, name in enumerate(names):
                await add_pods(kube, *halves(f"p{number}-", 12, name))
            found = await bound(kube, 16, PATIENCE_S)
        assert_no_card_over(found)
        assert sum(units_by_card(found).values()) == 8 * CARD_UNITS


async def test_pods_of_a_scheduler_name_that_is_added_later_are_bound(tmp_path: Path) -> None:
    async with served(tmp_path) as (kube, config):
        await add_node(kube, "n", 8)
        await add_pods(kube, *halves("a", 4, "one"), *halves("b", 4, "other"))
        with schedulers(config, "one"):
            await bound(kube, 4, PATIENCE_S)
            first = await leader(kube)
            with schedulers(config, "other"):
                found = await bound(kube, 8, PATIENCE_S)
                assert await leader(kube) == first
        assert_no_card_over(found)


async def _in_mid_burst(
    tmp_path: Path, nodes: int, pods: int, happens: Callable[[Process], None]
) -> list[Obj]:
    """Disturb the leader when a part of the pods is bound. Returns the pods in the end."""
    async with served(tmp_path) as (kube, config):
        for node in range(nodes):
            await add_node(kube, f"n{node}", 2)
        with schedulers(config, "one") as [first]:
            while not await leader(kube):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            with schedulers(config, "one"):
                adding = asyncio.create_task(
                    add_pods(
                        kube, *(gpu_pod(f"p{i}", units=3, schedulerName="one") for i in range(pods))
                    )
                )
                await bound(kube, pods // 10, PATIENCE_S)
                happens(first)
                await adding
                await bound(kube, pods, 2 * PATIENCE_S)
                first.send(signal.SIGCONT)  # with the requests that it was about to send
                return await _settled(kube)


async def _settled(kube: Kube) -> list[Obj]:
    """The pods, when they have not changed for a while."""
    version = ""
    while True:
        listing = await kube.list(PODS)
        versions = ",".join(pod["metadata"]["resourceVersion"] for pod in listing.items)
        if versions == version:
            return listing.items
        version = versions
        await asyncio.sleep(1.0)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
async def test_a_thousand_pods_while_the_leader_is_stopped(
    tmp_path: Path, number: signal.Signals
) -> None:
    pods = await _in_mid_burst(tmp_path, 100, 1000, lambda first: first.send(number))
    assert all(pod["spec"].get("nodeName") for pod in pods)
    assert_no_card_over(pods)
    assert sum(units_by_card(pods).values()) == 3000
