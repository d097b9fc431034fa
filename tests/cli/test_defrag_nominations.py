"""`gpupool defrag --apply` writes where the pod after the one that it evicts is to go."""

import asyncio
from typing import Any

import pytest

from gpupool.contract.names import ANNOTATION_PLANNED_MOVES
from gpupool.contract.planned_moves import PlannedMove, planned_moves_text
from tests.cli.test_defrag_steps import carry, made, shorten_waits


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
