"""Preemption in the scheduler: claims, messages on pods, and failures."""

import logging

import pytest

from gpupool.scheduler import cycle
from gpupool.scheduler.cycle import BEING_CLEARED
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.preemption_claims import SLACK_S
from tests.scheduler.model_api import UNITS, Fate
from tests.scheduler.stepped import Stepped


async def full_node() -> Stepped:
    """Both cards of the only node are taken by pods of priority 0."""
    stepped = Stepped()
    stepped.api.set_node("n", ill=False)
    for name in ("low0", "low1"):
        await stepped.place(name, UNITS)
    return stepped


async def test_a_pod_waits_without_new_victims_when_others_already_leave_enough_room() -> None:
    stepped = await full_node()
    stepped.api.add_pod("first", 1, priority=5)
    assert len(stepped.try_next()) == 1
    assert len(stepped.state.preemption_claims) == 1
    stepped.api.add_pod("second", 2, priority=5)
    await stepped.write(stepped.try_next())
    assert stepped.api.pods["second"]["status"] == {"nominatedNodeName": "n"}
    assert {"low0", "low1"} <= set(stepped.api.pods)  # no write for `first` was sent
    assert stepped.said("second") == ("0/1 nodes are available: 1 Insufficient aliyun.com/gpu-mem.")


async def test_room_that_others_will_leave_for_a_pod_too_is_not_taken_by_lower_pods() -> None:
    stepped = Stepped()
    stepped.api.graceful = True
    stepped.api.set_node("n", ill=False)
    await stepped.place("low", UNITS - 1)
    await stepped.place("keeps", UNITS, priority=9)
    stepped.api.add_pod("first", 2, priority=5)
    stepped.api.add_pod("second", 2, priority=5)
    stepped.api.add_pod("thief", 1)
    await stepped.settle()
    await stepped.end("low")
    bound = {name for name, pod in stepped.api.pods.items() if pod["spec"].get("nodeName")}
    assert bound == {"keeps", "first", "second"}


async def test_pods_that_must_not_preempt_keep_nobody_off_the_room_that_others_leave() -> None:
    stepped = Stepped()
    stepped.api.graceful = True
    stepped.api.set_node("n", ill=False)
    await stepped.place("low", UNITS - 1)
    await stepped.place("keeps", UNITS, priority=9)
    stepped.api.add_pod("first", 2, priority=5)
    stepped.api.add_pod("never", 2, priority=5, spec={"preemptionPolicy": "Never"})
    stepped.api.add_pod("small", 1)
    await stepped.settle()
    assert stepped.api.pods["small"]["spec"].get("nodeName") == "n"


async def test_a_claim_on_a_node_that_is_gone_does_not_stop_decisions_about_other_pods() -> None:
    stepped = await full_node()
    stepped.api.add_pod("first", 1, priority=5)
    stepped.try_next()
    stepped.api.remove_node("n")
    stepped.api.set_node("m", ill=False)
    stepped.tell()
    stepped.api.add_pod("second", UNITS + 1, priority=4)
    while "second" not in {pod.request.name for pod in _parked(stepped)}:
        stepped.try_next()
    assert "preemption: 0/1 nodes are available" in stepped.said("second")


def _parked(stepped: Stepped) -> list[Pending]:
    return [stepped.state.pending[uid] for uid in stepped.scheduler._reports._news]


async def test_a_pod_whose_node_is_being_cleared_is_told_so() -> None:
    stepped = await full_node()
    stepped.api.graceful = True
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.write(stepped.try_next())
    assert stepped.try_next() == []
    assert stepped.said("high").endswith(f"preemption: {BEING_CLEARED}")


async def test_a_claim_ends_when_its_victims_do_not_leave() -> None:
    stepped = await full_node()
    stepped.api.add_pod("high", UNITS, priority=5)
    stepped.try_next()
    assert len(stepped.state.preemption_claims) == 1
    stepped.now_s += SLACK_S + 31
    stepped.scheduler._next(stepped.now_s)
    assert len(stepped.state.preemption_claims) == 0


async def test_a_victim_that_is_gone_already_is_no_error() -> None:
    stepped = await full_node()
    stepped.api.add_pod("high", UNITS, priority=5)
    (clear,) = stepped.try_next()
    (claim,) = [claim for _, claim in stepped.state.preemption_claims.items()]
    (victim,) = [name for name in ("low0", "low1") if stepped.uid(name) in claim.remaining]
    stepped.api.delete_pod(victim)
    await stepped.write([clear])
    assert stepped.api.pods["high"]["status"]["nominatedNodeName"] == "n"
    assert stepped.uid("high") in stepped.state.preemption_claims


async def test_a_victim_is_deleted_even_if_its_condition_cannot_be_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stepped = await full_node()
    stepped.api.add_pod("high", UNITS, priority=5)
    with caplog.at_level(logging.WARNING):
        await stepped.write(stepped.try_next(), Fate.OK, Fate.BUSY)
    assert len(stepped.api.pods) == 2
    assert "condition of victim not written" in caplog.messages


async def test_a_scheduler_that_may_not_lead_any_more_evicts_nobody() -> None:
    stepped = await full_node()
    stepped.api.add_pod("high", UNITS, priority=5)
    writes = stepped.try_next()
    stepped.leads = False
    await stepped.write(writes)
    assert len(stepped.api.pods) == 3
    assert len(stepped.state.preemption_claims) == 0
    assert stepped.said("high").startswith("preemption failed: ")


async def test_words_are_kept_for_a_limited_number_of_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cycle, "_MOST_WORDS", 1)
    stepped = await full_node()
    for units in (1, 2, 3):
        stepped.api.add_pod(f"p{units}", units, priority=0)
        stepped.try_next()
        assert "Insufficient" in stepped.said(f"p{units}")
        assert len(stepped.scheduler._cycle.words) == 1
