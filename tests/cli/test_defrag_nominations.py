"""`gpupool defrag --apply` writes where the pod after the one that it evicts is to go."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gpupool.contract.names import ANNOTATION_PLANNED_MOVES
from gpupool.contract.planned_moves import PlannedMove, planned_moves_text
from gpupool.engine.defrag import Plan
from kubeclient.placement import Toleration
from tests.cli.test_defrag_steps import Api, carry, made, shorten_waits


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_waits(monkeypatch)


async def test_while_a_pod_moves_its_controller_has_a_nomination_for_the_planned_card() -> None:
    api, plan = made()
    seen: list[dict[str, tuple[PlannedMove, ...]]] = []
    api.on_evict = lambda: seen.append(api.planned)
    await carry(api, plan)
    named = [
        {node: [(each.pod, each.controller, each.cards) for each in moves] for node, moves in found}
        for found in (each.items() for each in seen)
    ]
    assert named == [
        {"to-p0": [("uid-p0", "of-p0", ("GPU-to-p0",))]},
        {"to-p1": [("uid-p1", "of-p1", ("GPU-to-p1",))]},
    ]
    assert not api.planned


async def test_nominations_of_others_stay_and_those_that_are_over_or_damaged_go() -> None:
    api, plan = made()
    other = PlannedMove("another", "owner", ("GPU-x",), "2999-01-01T00:00:00Z")
    over = PlannedMove("long ago", "owner", ("GPU-x",), "2026-01-01T00:00:00Z")
    for node, text in (("to-p0", planned_moves_text([other, over])), ("to-p1", "{")):
        api.nodes[node]["metadata"]["annotations"][ANNOTATION_PLANNED_MOVES] = text
    assert (await carry(api, plan)).is_complete
    assert api.planned == {"to-p0": (other,)}


async def test_a_pod_that_ends_while_it_is_nominated_is_not_waited_for() -> None:
    api, plan = made()
    call = api.call

    async def ending(method: str, path: str, **rest: Any) -> tuple[int, bytes]:
        answer = await call(method, path, **rest)
        if api.planned:
            api.pods["p0"]["status"] = {"phase": "Succeeded"}
        return answer

    api.call = ending  # type: ignore[method-assign]
    done = await carry(api, plan)
    assert not api.evicted
    assert "pod team/p0 ends by itself now" in done.words


async def test_whoever_interrupts_while_a_nomination_ends_is_heard_before_the_next_pod() -> None:
    api, plan = made()
    call = api.call

    async def interrupted(method: str, path: str, **rest: Any) -> tuple[int, bytes]:
        if method == "PATCH" and api.planned and api.evicted == ["p0"]:
            work.cancel()
        return await call(method, path, **rest)

    api.call = interrupted  # type: ignore[method-assign]
    work = asyncio.ensure_future(carry(api, plan))
    done = await work
    assert api.evicted == ["p0"]
    assert done.words.startswith("1 of 2 pods moved, 1 was evicted. Stopped: it was interrupted")
    assert not api.planned
    assert not api.cordoned


async def _first_pod_stays(api: Api, plan: Plan, words: str) -> None:
    done = await carry(api, plan)
    assert not api.evicted
    assert words in done.words
    assert not api.planned


@pytest.mark.parametrize("way", ["ordered", "gone"])
async def test_nobody_is_evicted_whose_new_card_is_closed_meanwhile(way: str) -> None:
    """Another plan may make room there."""
    api, plan = made(lost={"to-p0"} if way == "gone" else set())
    if way == "ordered":
        api.cordon("to-p0", "another plan")
        await _first_pod_stays(api, plan, "node to-p0, card GPU-to-p0 is cordoned now. Plan anew.")
    else:
        await _first_pod_stays(api, plan, "0/1 nodes are available")


@pytest.mark.parametrize("tolerates", [False, True])
async def test_nobody_is_evicted_whose_new_node_is_cordoned_meanwhile(tolerates: bool) -> None:
    api, plan = made()
    api.nodes["to-p0"]["spec"] = {"unschedulable": True}
    if tolerates:
        anything = (Toleration("", exists=True, value="", effect=""),)
        moves = [replace(m, pod=replace(m.pod, tolerations=anything)) for m in plan.moves]
        assert (await carry(api, replace(plan, moves=tuple(moves)))).is_complete
    else:
        await _first_pod_stays(api, plan, "1 node(s) were unschedulable. Plan anew.")


async def test_nobody_is_evicted_whose_new_card_was_given_to_another_pod_meanwhile() -> None:
    api, plan = made()
    api.add_pod("late", "to-p0")
    words = "pod team/p0 would not get the place of the plan: 0/1 nodes are available"
    await _first_pod_stays(api, plan, words)


async def test_a_new_pod_beside_the_planned_place_is_in_nobodys_way() -> None:
    api, plan = made()
    del api.add_pod("late", "to-p0")["metadata"]["annotations"]
    api.pods["late"]["spec"]["containers"] = [{"name": "c"}]
    assert (await carry(api, plan)).is_complete
