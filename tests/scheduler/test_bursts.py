"""Many pods at once: all that fit are bound in seconds, and no card is ever given twice."""

from pathlib import Path

from gpupool.scheduler.queue import State
from tests.scheduler.unreliable import Fault, unreliable
from tests.scheduler.world import (
    CARD_UNITS,
    add_node,
    add_pods,
    assert_no_card_over,
    bound,
    elected,
    gpu_pod,
    scheduling,
    units_by_card,
    world,
)


async def test_sixteen_halves_fill_eight_cards(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "n", 8)
        async with scheduling(kube):
            await add_pods(kube, *(gpu_pod(f"p{i}", units=CARD_UNITS // 2) for i in range(16)))
            pods = await bound(kube, 16)
        assert set(units_by_card(pods).values()) == {CARD_UNITS}
        assert len(units_by_card(pods)) == 8


async def test_forty_pods_at_once_on_one_node(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "n", 8)
        async with scheduling(kube) as scheduler:
            await add_pods(kube, *(gpu_pod(f"p{i}", units=4) for i in range(40)))
            pods = await bound(kube, 32)
            assert_no_card_over(pods)
            assert sum(units_by_card(pods).values()) == 8 * CARD_UNITS
            assert scheduler.state.queue.counts()[State.PARKED] == 8


async def test_a_thousand_equal_pods_on_a_hundred_nodes(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        for node in range(100):
            await add_node(kube, f"n{node}", 2)
        async with scheduling(kube):
            await add_pods(kube, *(gpu_pod(f"p{i}", units=3) for i in range(1000)))
            pods = await bound(kube, 1000)
        assert_no_card_over(pods)  # five on each card, and a unit left


async def test_a_standby_takes_over_when_the_leader_leaves(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        for node in range(4):
            await add_node(kube, f"n{node}", 8)
        async with elected(kube, "two"), elected(kube, "three"):
            async with elected(kube, "one"):
                await add_pods(kube, *(gpu_pod(f"a{i}", units=4) for i in range(64)))
                await bound(kube, 10)
            await add_pods(kube, *(gpu_pod(f"b{i}", units=4) for i in range(70)))
            pods = await bound(kube, 128)
        assert_no_card_over(pods)
        assert set(units_by_card(pods).values()) == {CARD_UNITS}


async def test_no_card_is_given_twice_when_a_cut_off_leader_is_replaced(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        for node in range(4):
            await add_node(kube, f"n{node}", 8)
        way = unreliable(kube)
        async with elected(way.kube, "one", valid_s=1.0):
            await add_pods(kube, *(gpu_pod(f"a{i}", units=4) for i in range(64)))
            await bound(kube, 10)
            way.choose = lambda _method, _path: (
                Fault.LOST_ANSWER
            )  # also for requests that were sent already
            way.cut_watches()
            async with elected(kube, "two", valid_s=1.0):
                await add_pods(kube, *(gpu_pod(f"b{i}", units=4) for i in range(70)))
                pods = await bound(kube, 128)
        assert_no_card_over(pods)
        assert set(units_by_card(pods).values()) == {CARD_UNITS}
