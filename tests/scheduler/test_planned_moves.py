"""Planned moves: the next pod of a controller goes where the plan wants it, if it fits there."""

import time
from typing import Any

import pytest

from gpupool.contract.allocation import allocation_of
from gpupool.contract.extender_messages import BindingArgs, ExtenderArgs
from gpupool.contract.names import ANNOTATION_ALLOCATION, ANNOTATION_PLANNED_MOVES
from gpupool.contract.planned_moves import PlannedMove, planned_moves_text
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.core.pods import PodRequest
from gpupool.scheduler.extender import Extender
from kubeclient.client import Kube
from kubeclient.times import stamp
from tests.scheduler.model_api import UNITS, Fate
from tests.scheduler.stepped import Stepped, with_answers


def made(*names: str) -> Stepped:
    """Equal nodes of two cards, in the order in which the scheduler hears of them."""
    stepped = Stepped()
    for name in names or ("a", "b", "c"):
        stepped.api.set_node(name, ill=False)
    return stepped


def entry(
    *cards: str, pod: str = "left", controller: str = "owner", within_s: float = 60.0
) -> PlannedMove:
    return PlannedMove(pod, controller, cards, stamp(time.time() + within_s))


def plan(stepped: Stepped, node: str, *moves: PlannedMove, text: str = "") -> None:
    text = text or planned_moves_text(moves)
    stepped.api.annotate("nodes", node, {ANNOTATION_PLANNED_MOVES: text or None})


def owned(stepped: Stepped, name: str, units: int = 1, by: str = "owner", **more: Any) -> None:
    owner = {"kind": "ReplicaSet", "name": "r", "uid": by, "controller": True}
    stepped.api.add_pod(name, units, ownerReferences=[owner], **more)


async def places(stepped: Stepped) -> dict[str, str]:
    """Card by name of the pod."""
    await stepped.settle()
    found = {}
    for name, pod in stepped.api.pods.items():
        text = pod["metadata"].get("annotations", {}).get(ANNOTATION_ALLOCATION)
        if text:
            found[name] = allocation_of(text).containers[0].shares[0].uuid
    return found


async def test_the_next_pod_of_the_controller_goes_to_the_planned_card() -> None:
    stepped = made()
    plan(stepped, "c", entry("c-1"))
    owned(stepped, "next")
    assert await places(stepped) == {"next": "c-1"}


@pytest.mark.parametrize("by", ["another", ""])
async def test_pods_of_others_go_where_they_would_go_anyway(by: str) -> None:
    stepped = made()
    plan(stepped, "c", entry("c-1"))
    if by:
        owned(stepped, "next", by=by)
    else:
        stepped.api.add_pod("next", 1)
    assert await places(stepped) == {"next": "a-0"}


async def test_a_planned_place_is_for_one_pod_although_more_would_fit() -> None:
    stepped = made()
    await stepped.place("filler", 1)
    plan(stepped, "c", entry("c-1"))
    owned(stepped, "next")
    owned(stepped, "grown")
    assert await places(stepped) == {"filler": "a-0", "next": "c-1", "grown": "a-0"}


async def test_each_of_several_pods_of_a_controller_takes_one_place_the_oldest_first() -> None:
    stepped = made()
    plan(stepped, "b", entry("b-1", pod="second", within_s=90))
    plan(stepped, "c", entry("c-1", pod="first", within_s=60))
    for name in ("one", "two"):
        owned(stepped, name, UNITS)
    assert await places(stepped) == {"one": "c-1", "two": "b-1"}


async def test_a_place_that_is_taken_meanwhile_is_passed_over() -> None:
    stepped = made()
    stepped.api.add_pod("thief", UNITS, spec={"nodeSelector": {"kubernetes.io/hostname": "c"}})
    assert await places(stepped) == {"thief": "c-0"}
    plan(stepped, "c", entry("c-0", pod="first"), entry("c-1", pod="second", within_s=90))
    owned(stepped, "next", UNITS)
    assert (await places(stepped))["next"] == "c-1"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"version":2,"moves":[]}',
        planned_moves_text([PlannedMove("left", "owner", ("c-1",), "soon")]),
        planned_moves_text([PlannedMove("left", "owner", ("c-1",), "2026-01-01T00:00:00Z")]),
        planned_moves_text([PlannedMove("left", "owner", ("c-1",), "9026-01-01T00:00:00Z")]),
        planned_moves_text([PlannedMove("left", "owner", (), "2026-01-01T00:00:00Z")]),
        planned_moves_text([entry("a-0"), entry("c-7", pod="unknown card")]),
        planned_moves_text([entry()]),
    ],
)
async def test_what_is_damaged_over_or_from_a_wrong_clock_counts_as_missing(text: str) -> None:
    stepped = made()
    plan(stepped, "c", text=text)
    owned(stepped, "next")
    assert await places(stepped) == {"next": "a-0"}


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"kubernetes.io/hostname": "b"}},
        {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    ],
)
async def test_no_filter_is_overridden(spec: dict[str, Any]) -> None:
    stepped = made("b", "c")
    plan(stepped, "c", entry("c-1"))
    owned(stepped, "next", spec=spec)
    await stepped.settle()
    assert stepped.api.pods["next"]["spec"].get("nodeName") in (None, "b")


async def test_a_card_that_is_ill_or_cordoned_gets_nobody() -> None:
    stepped = made()
    stepped.api.set_node("c", ill=True)
    plan(stepped, "c", entry("c-0"))
    owned(stepped, "next")
    assert (await places(stepped))["next"] != "c-0"


async def test_the_cards_that_a_pod_does_not_accept_are_not_given_to_it() -> None:
    stepped = made()
    plan(stepped, "c", entry("c-1"))
    owned(stepped, "next", annotations={"gpupool.io/avoid-card-uuids": "c-1"})
    assert (await places(stepped))["next"] != "c-1"


async def test_room_that_is_kept_for_another_pod_stays_its_own() -> None:
    stepped = made()
    plan(stepped, "c", entry("c-1"))
    stepped.tell()
    shares = (CardShare("c-1", 1, UNITS, UNITS * 1024, UNITS),)
    kept = Allocation((ContainerGpus("c", shares, Isolation.LIMIT),))
    waiting = PodRequest("waits", "default", "waits", {"pods": 1}, priority=-5)
    stepped.state.cluster.reserve(waiting, "c", kept)
    owned(stepped, "next")
    assert (await places(stepped))["next"] != "c-1"


async def test_a_plan_that_has_ended_or_whose_node_is_gone_is_forgotten() -> None:
    stepped = made()
    plan(stepped, "c", entry("c-1"))
    plan(stepped, "b", entry("b-1", pod="other"))
    stepped.tell()
    assert "owner" in stepped.state.planned_moves
    plan(stepped, "c")
    stepped.api.remove_node("b")
    stepped.tell()
    assert "owner" not in stepped.state.planned_moves
    owned(stepped, "next")
    assert await places(stepped) == {"next": "a-0"}


async def test_a_pod_whose_binding_failed_may_take_its_place_again() -> None:
    stepped = made()
    plan(stepped, "c", entry("c-1"))
    owned(stepped, "next", UNITS)
    await stepped.write(stepped.try_next(), Fate.FORBIDDEN)
    assert not stepped.api.pods["next"]["spec"].get("nodeName")
    stepped.now_s += 60
    assert await places(stepped) == {"next": "c-1"}


async def test_a_pod_without_gpus_goes_to_the_planned_node() -> None:
    stepped = made()
    plan(stepped, "c", entry())
    owned(stepped, "next", 0)
    await stepped.settle()
    assert stepped.api.pods["next"]["spec"]["nodeName"] == "c"


def extender_of(stepped: Stepped) -> Extender:
    stepped.tell()
    return Extender(Kube(stepped.api), stepped.state, lambda: stepped.now_s, lambda: True)


def asked(stepped: Stepped, name: str) -> ExtenderArgs:
    owned(stepped, name, spec={"schedulerName": "default-scheduler"})
    stepped.tell()
    return ExtenderArgs(stepped.api.pods[name], tuple(stepped.api.nodes), None)


async def test_the_extender_offers_the_planned_node_alone_and_gives_the_planned_card() -> None:
    stepped = made()
    await stepped.place("filler", 1)
    plan(stepped, "c", entry("c-1"))
    extender = extender_of(stepped)
    assert extender.filter(asked(stepped, "next"))["NodeNames"] == ["c"]
    wanted = BindingArgs("next", "default", stepped.uid("next"), "c")
    assert await with_answers(stepped.api, extender.bind(wanted)) == ""
    assert (await places(stepped))["next"] == "c-1"
    # It is taken.
    assert len(extender.filter(asked(stepped, "grown"))["NodeNames"]) == 3


async def test_the_extender_leaves_the_plan_where_the_planned_node_was_not_offered() -> None:
    stepped = made()
    plan(stepped, "c", entry("c-1"))
    extender = extender_of(stepped)
    args = ExtenderArgs(asked(stepped, "next").pod, ("a", "b"), None)
    assert extender.filter(args)["NodeNames"] == ["a", "b"]
    wanted = BindingArgs("next", "default", stepped.uid("next"), "b")
    assert await with_answers(stepped.api, extender.bind(wanted)) == ""
    assert (await places(stepped))["next"] == "b-0"
