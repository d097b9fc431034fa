"""Pods that may hold cards, but nobody can read which: their node's cards go to no other pod."""

from typing import Any

import pytest

from gpupool.contract.allocation import allocation_text
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_MEM_IDX,
    ANNOTATION_MEM_POD,
    GROUP_DEVICES,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
)
from gpupool.contract.pods import pod_request
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.scheduler.answers import outlook, outlook_words, placed_words
from gpupool.scheduler.findings import UNREAD
from tests.scheduler.model_api import UNITS
from tests.scheduler.stepped import Stepped

VERSION_2 = '{"version": 2, "pods": []}'
ON_CARD_0 = f"{GROUP_DEVICES}/c"


def with_nodes(*names: str) -> Stepped:
    stepped = Stepped()
    for name in names:
        stepped.api.set_node(name, ill=False)
    stepped.tell()
    return stepped


def containers(**units: int) -> dict[str, Any]:
    return {
        "containers": [
            {"name": name, "resources": {"limits": {RESOURCE_GPU_MEM: str(each)}}}
            for name, each in units.items()
        ]
    }


def bound_elsewhere(
    stepped: Stepped, name: str, annotations: dict[str, str] | None = None, units: int = 1
) -> None:
    """A pod that another scheduler, or another version of this one, put on node n."""
    stepped.api.add_pod(name, units, spec={"nodeName": "n"}, annotations=annotations or {})
    stepped.tell()


def findings(stepped: Stepped) -> list[str]:
    return [found.message for found in stepped.state.findings.take() if found.reason == UNREAD]


@pytest.mark.parametrize("text", [None, "", "no JSON", VERSION_2])
async def test_no_card_of_the_node_is_given_to_others_while_an_allocation_cannot_be_read(
    text: str | None,
) -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "old", {ANNOTATION_ALLOCATION: text} if text is not None else {})
    stepped.api.add_pod("new", 1)
    assert await stepped.settle() == {"old"}
    stepped.api.set_node("m", ill=False)
    assert await stepped.settle() == {"old", "new"}
    assert stepped.api.pods["new"]["spec"]["nodeName"] == "m"


async def test_the_cards_are_open_again_when_the_pod_has_gone_or_its_allocation_can_be_read() -> (
    None
):
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "one", {ANNOTATION_ALLOCATION: VERSION_2})
    bound_elsewhere(stepped, "two")
    stepped.api.add_pod("new", UNITS)
    share = CardShare("n-0", 0, 1, 1024, UNITS)
    read = Allocation((ContainerGpus("c", (share,), Isolation.LIMIT),))
    stepped.api.annotate("pods", "one", {ANNOTATION_ALLOCATION: allocation_text(read)})
    assert "new" not in await stepped.settle()
    await stepped.end("two")
    assert "new" in await stepped.settle()
    assert stepped.api.units_by_card() == {"n-0": 1, "n-1": UNITS}


async def test_a_pod_that_has_ended_and_one_without_gpus_close_nothing() -> None:
    stepped = with_nodes("n")
    stepped.api.add_pod("done", 1, spec={"nodeName": "n"})
    stepped.api.finish_pod("done")
    stepped.api.news.popleft()  # the watch shows the pod first when it is done
    bound_elsewhere(stepped, "plain", units=0)
    bound_elsewhere(stepped, "odd", {ANNOTATION_ALLOCATION: "no JSON"}, units=0)
    assert findings(stepped) == []
    stepped.api.add_pod("new", UNITS)
    assert "new" in await stepped.settle()


async def test_cards_that_other_annotations_name_are_closed_and_the_others_stay_open() -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "v2", {ANNOTATION_ALLOCATION: VERSION_2, ON_CARD_0: "n-0"})
    stepped.api.add_pod("first", 1)
    stepped.api.add_pod("second", UNITS)
    assert await stepped.settle() == {"v2", "first"}
    assert stepped.api.units_by_card() == {"n-1": 1}


async def test_a_share_that_a_gpushare_scheduler_gave_is_held_on_the_card_of_its_index() -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "old", {ANNOTATION_MEM_IDX: "1", ANNOTATION_MEM_POD: "3"}, units=3)
    assert findings(stepped) == []
    stepped.api.add_pod("beside", 1)
    stepped.api.add_pod("large", UNITS)
    assert await stepped.settle() == {"old", "beside", "large"}
    stepped.api.add_pod("more", 1)
    assert "more" not in await stepped.settle()


@pytest.mark.parametrize(
    "annotations",
    [
        {ANNOTATION_MEM_IDX: "7", ANNOTATION_MEM_POD: "1"},  # there is no such card
        {ANNOTATION_MEM_IDX: "one", ANNOTATION_MEM_POD: "1"},
        {ANNOTATION_MEM_IDX: "-1", ANNOTATION_MEM_POD: "1"},
        {ANNOTATION_MEM_IDX: "", ANNOTATION_MEM_POD: "1"},
        {ANNOTATION_ALLOCATION: VERSION_2, ON_CARD_0: ""},
    ],
)
async def test_annotations_that_name_no_card_of_the_node_close_all_of_them(
    annotations: dict[str, str],
) -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "old", annotations)
    stepped.api.add_pod("new", 1)
    assert "new" not in await stepped.settle()


async def test_a_pod_that_has_more_than_it_asks_for_closes_the_card_of_its_index() -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "old", {ANNOTATION_MEM_IDX: "0", ANNOTATION_MEM_POD: "3"}, units=1)
    for name in ("a", "b"):
        stepped.api.add_pod(name, 2)
    stepped.api.add_pod("c", 1)
    assert await stepped.settle() == {"old", "a", "b"}


async def test_one_container_that_cannot_be_read_closes_cards_beside_those_of_the_others() -> None:
    stepped = with_nodes("n")
    share = CardShare("n-0", 0, 2, 2048, UNITS)
    known = allocation_text(Allocation((ContainerGpus("a", (share,), Isolation.LIMIT),)))
    stepped.api.add_pod(
        "old",
        0,
        spec={**containers(a=2, b=1), "nodeName": "n"},
        annotations={ANNOTATION_ALLOCATION: known, f"{GROUP_DEVICES}/b": "n-1"},
    )
    stepped.api.add_pod("half", 2)
    stepped.api.add_pod("other", 1)
    assert await stepped.settle() == {"old", "half"}
    assert stepped.api.units_by_card() == {"n-0": 4}


async def test_a_request_that_makes_no_sense_may_hold_cards_all_the_same() -> None:
    stepped = with_nodes("n")
    limits = {RESOURCE_GPU: "1", RESOURCE_GPU_MEM: "1"}
    spec = {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": limits}}]}
    stepped.api.add_pod("odd", 0, spec=spec)
    stepped.api.add_pod("new", 1)
    assert await stepped.settle() == {"odd"}


async def test_cards_that_appear_later_are_closed_as_well() -> None:
    stepped = Stepped()
    bound_elsewhere(stepped, "old")
    assert findings(stepped) == []  # nothing is closed yet
    stepped.api.set_node("n", ill=False)
    stepped.api.add_pod("new", 1)
    assert await stepped.settle() == {"old"}


async def test_one_event_says_what_is_closed_and_what_to_do() -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "foreign")
    [words] = findings(stepped)
    assert "no annotation gpupool.io/allocation" in words
    assert "cards 0, 1 of node n take no other pods" in words
    bound_elsewhere(stepped, "v2", {ANNOTATION_ALLOCATION: VERSION_2, ON_CARD_0: "n-0"})
    [words] = findings(stepped)
    assert "version 2; this program reads version 1" in words
    assert "card 0 of node n takes no other pods" in words
    stepped.api.set_status("v2", phase="Running")
    stepped.tell()
    assert findings(stepped) == []
    stepped.api.remove_node("n")
    stepped.tell()
    stepped.api.set_node("n", ill=False)
    stepped.tell()
    assert findings(stepped) == []  # said already


async def test_the_event_comes_when_the_inventory_does() -> None:
    stepped = Stepped()
    bound_elsewhere(stepped, "old")
    stepped.api.set_node("n", ill=False)
    stepped.tell()
    assert len(findings(stepped)) == 1


async def test_a_pod_of_higher_priority_may_evict_it() -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "old")
    stepped.api.add_pod("urgent", UNITS, priority=10)
    assert await stepped.settle() == {"urgent"}


async def test_it_is_evicted_only_if_that_helps() -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "v2", {ANNOTATION_ALLOCATION: VERSION_2, ON_CARD_0: "n-0"})
    await stepped.place("small", 1)
    stepped.api.add_pod("urgent", UNITS, priority=10)
    left = await stepped.settle()
    assert "urgent" in left
    assert len(left) == 2


async def test_its_share_cannot_be_resized_and_nothing_of_it_is_freed() -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "old", {ANNOTATION_ALLOCATION: VERSION_2, "gpupool.io/resize": "2"})
    for write in stepped.scheduler._resizer.due_writes(stepped.now_s):
        await stepped.write([write])
    outcome = stepped.api.pods["old"]["metadata"]["annotations"]["gpupool.io/resize-outcome"]
    assert outcome.startswith("refused: which cards it holds cannot be read")
    assert stepped.api.pods["old"]["metadata"]["annotations"][ANNOTATION_ALLOCATION] == VERSION_2
    stepped.api.add_pod("new", 1)
    assert await stepped.settle() == {"old"}


async def test_another_share_does_not_grow_on_a_closed_card() -> None:
    stepped = with_nodes("n")
    await stepped.place("p", 1)
    bound_elsewhere(stepped, "old")
    stepped.api.annotate("pods", "p", {"gpupool.io/resize": "2"})
    stepped.tell()
    for write in stepped.scheduler._resizer.due_writes(stepped.now_s):
        await stepped.write([write])
    outcome = stepped.api.pods["p"]["metadata"]["annotations"]["gpupool.io/resize-outcome"]
    assert "closed: which cards pod default/old holds cannot be read" in outcome


async def test_a_new_leader_closes_the_same_cards() -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "old")
    stepped.fail_over()
    stepped.api.add_pod("new", 1)
    assert await stepped.settle() == {"old"}


async def test_a_waiting_pod_is_told_by_explain_which_pod_closes_the_cards() -> None:
    stepped = with_nodes("n")
    bound_elsewhere(stepped, "old")
    stepped.api.add_pod("new", 1)
    stepped.tell()
    words = outlook_words(
        "default/new", outlook(stepped.state, pod_request(stepped.api.pods["new"]))
    )
    assert "card 0: closed: which cards pod default/old holds cannot be read" in words
    place = stepped.state.ledger.assignment(stepped.uid("old"))
    assert place is not None
    assert "cannot be read" in placed_words("default/old", place.node, place.allocation)
