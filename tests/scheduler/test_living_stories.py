"""What happened to a cluster when a bug was found. Chance comes across these stories too rarely."""

from typing import Any

import pytest

from tests.scheduler.living import Template
from tests.scheduler.model_api import UNITS
from tests.scheduler.test_living_cluster import ANTI_AFFINITY, CLAIM, NEVER, Action, play


def come(count: int = 1, **template: Any) -> Action:
    return ("pods_come", {"template": Template(**template), "count": count})


def goes(*, one: bool = True) -> Action:
    return ("what_terminates_has_gone", {"number": 0, "one": one})


def member(*sizes: int) -> Action:
    spec: dict[str, Any] = {}
    arguments = {"group": "g", "least": 2, "sizes": list(sizes), "priority": 0, "spec": spec}
    return ("members_come", arguments)


LABELLED: tuple[Action, ...] = tuple(
    ("a_namespace_is_labelled", {"name": "other", "team": team}) for team in ("x", "y")
)
STORIES: dict[str, list[Action]] = {
    "a small pod takes the room of the first victim, whose grace period is long": [
        come(2, units=UNITS, grace_s=600),
        come(units=UNITS, cards=2, priority=10),
        ("time_passes", {"seconds": 400}),
        come(units=UNITS),
        goes(),
    ],
    "an older pod takes the room that the last leader cleared": [
        come(units=UNITS),
        come(units=UNITS, priority=10),
        come(units=UNITS, priority=10, spec=NEVER),
        come(units=UNITS, priority=10),
        ("the_leader_fails", {"late": True}),
    ],
    "an older pod of equal priority takes the room": [
        come(units=UNITS),
        come(units=UNITS, priority=10),
        come(units=UNITS, priority=10, spec=CLAIM),
        come(units=UNITS, priority=10),
        ("a_volume_is_bound", {"node": "m"}),
        goes(),
    ],
    "a member starts beside one that terminates": [
        member(1, 1),
        ("a_pod_is_being_deleted", {"number": 0}),
        ("a_pod_goes", {"number": 1}),
        member(1),
    ],
    "a namespace is labelled, so that its pod may be beside another": [
        LABELLED[0],
        come(units=1, spec=ANTI_AFFINITY),
        come(units=1, namespace="other", app="a"),
        LABELLED[1],
    ],
    "the node dies for which a pod is nominated": [
        ("a_node_changes", {"name": "n", "change": "good"}),
        come(4, units=UNITS),
        come(units=UNITS, priority=10),
        ("a_node_changes", {"name": "m", "change": "unreachable"}),
        ("a_node_changes", {"name": "m", "change": "good"}),
        ("a_node_changes", {"name": "n", "change": "unreachable"}),
    ],
    "evictions are refused": [
        come(2, units=UNITS),
        ("a_webhook_protects_a_pod", {"number": 0, "protect": True}),
        ("a_webhook_protects_a_pod", {"number": 1, "protect": True}),
        come(units=UNITS, priority=10),
        ("time_passes", {"seconds": 400}),
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_no_old_bug_comes_back(story: str) -> None:
    play(False, STORIES[story])
