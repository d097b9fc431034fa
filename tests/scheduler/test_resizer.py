"""The Resizer's writes: when none is sent, and what happens if one fails."""

import logging
from collections.abc import Iterable

import pytest

from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import ANNOTATION_RESIZE
from gpupool.contract.resize import ShrinkReport
from gpupool.core.quota import UnitsQuota
from gpupool.engine.cluster import ClusterModel
from gpupool.scheduler import resizer as resizer_module
from gpupool.scheduler.resize_step import Resizable, Step, next_step, resizable_of
from gpupool.scheduler.writes import Write
from tests.scheduler.stepped import Stepped


async def wish_of_one(units: str) -> Stepped:
    """A bound pod with 1 unit that wishes for another share."""
    stepped = Stepped()
    stepped.api.set_node("n", ill=False)
    await stepped.place("p", 1)
    stepped.api.annotate("pods", "p", {ANNOTATION_RESIZE: units})
    stepped.tell()
    return stepped


def due(stepped: Stepped) -> list[Write]:
    return stepped.scheduler._resizer.due_writes(stepped.now_s)


def wish(stepped: Stepped) -> str | None:
    found: str | None = stepped.api.pods["p"]["metadata"]["annotations"].get(ANNOTATION_RESIZE)
    return found


async def test_a_scheduler_that_may_not_lead_any_more_changes_no_share() -> None:
    stepped = await wish_of_one("2")
    (write,) = due(stepped)
    stepped.leads = False
    await stepped.write([write])
    assert wish(stepped) == "2"


async def test_a_pod_that_was_deleted_is_not_resized_again() -> None:
    stepped = await wish_of_one("2")
    (write,) = due(stepped)
    stepped.api.delete_pod("p")
    await stepped.write([write])
    stepped.now_s += 1000
    assert due(stepped) == []


@pytest.mark.parametrize("error", [LookupError("no such card"), OverflowError("too large")])
async def test_a_wish_that_cannot_be_judged_is_logged_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    failures = [error]

    def fails_once(
        cluster: ClusterModel,
        pod: Resizable,
        report: ShrinkReport | None,
        quotas: Iterable[UnitsQuota] = (),
    ) -> Step | None:
        if failures:
            raise failures.pop()
        return next_step(cluster, pod, report, quotas)

    monkeypatch.setattr(resizer_module, "next_step", fails_once)
    stepped = await wish_of_one("2")
    with caplog.at_level(logging.ERROR):
        assert due(stepped) == []
    assert "resize request could not be evaluated" in caplog.messages
    stepped.now_s += 1000
    await stepped.write(due(stepped))
    assert wish(stepped) is None


async def test_a_wish_of_a_pod_whose_node_is_gone_is_refused() -> None:
    stepped = await wish_of_one("2")
    stepped.api.remove_node("n")
    stepped.tell()
    pod = resizable_of(stepped.api.pods["p"], pod_allocation(stepped.api.pods["p"]))
    assert pod is not None
    step = next_step(stepped.state.cluster, pod, None)
    assert step is not None
    assert step.refusal == "its node is not there"


async def test_a_wish_of_a_pod_without_a_share_is_refused() -> None:
    stepped = Stepped()
    stepped.api.set_node("n", ill=False)
    await stepped.place("p", 1)
    stepped.api.pods["p"]["metadata"]["annotations"] = {ANNOTATION_RESIZE: "2"}
    pod = resizable_of(stepped.api.pods["p"], pod_allocation(stepped.api.pods["p"]))
    assert pod is not None
    step = next_step(stepped.state.cluster, pod, None)
    assert step is not None
    assert step.refusal == "it has no share of a card"
