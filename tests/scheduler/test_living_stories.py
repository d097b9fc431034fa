"""What happened to a cluster when a bug was found. Chance comes across these stories too rarely."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.scheduler.living import Template
from tests.scheduler.model_api import UNITS, Fate
from tests.scheduler.test_living_cluster import (
    ANTI_AFFINITY,
    CLAIM,
    DEVICE_CLAIM,
    NEVER,
    Action,
    play,
)


def come(count: int = 1, **template: Any) -> Action:
    return ("pods_come", {"template": Template(**template), "count": count})


def goes(*, one: bool = True) -> Action:
    return ("what_terminates_has_gone", {"number": 0, "one": one})


def member(
    *sizes: int, priority: int = 0, least: int = 2, spec: Mapping[str, Any] | None = None
) -> Action:
    arguments = {"least": least, "sizes": list(sizes), "priority": priority, "spec": spec or {}}
    return ("members_come", {"group": "g", **arguments})


LABELLED: tuple[Action, ...] = tuple(
    ("a_namespace_is_labelled", {"name": "other", "team": team}) for team in ("x", "y")
)
SECOND_NODE: Action = ("a_node_changes", {"name": "n", "change": "good"})
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
        SECOND_NODE,
        come(4, units=UNITS),
        come(units=UNITS, priority=10),
        ("a_node_changes", {"name": "m", "change": "unreachable"}),
        ("a_node_changes", {"name": "m", "change": "good"}),
        ("a_node_changes", {"name": "n", "change": "unreachable"}),
    ],
    "a pod waits for what others leave, and a small one takes a part of it": [
        come(units=UNITS - 1),
        come(units=UNITS, priority=10),
        come(units=2, priority=5),
        come(units=2, priority=5),
        come(units=1),
    ],
    "the victims of another pod leave, so that a pod can preempt that could not before": [
        come(units=UNITS, priority=10),
        come(units=UNITS - 1, priority=5),
        come(units=1),
        come(units=2, priority=5),
        come(units=2, priority=10),
    ],
    "pods of higher priority take cleared room, and a small pod what they leave": [
        come(units=1, cards=2, grace_s=600),
        come(2, units=2, cards=2, priority=5),
        come(units=1),
        member(2, priority=10, least=1),
    ],
    "a late big member of a group waits, and a small one fits": [
        member(1, 1),
        come(units=2),
        come(units=UNITS),
        member(UNITS),
        member(1),
        ("a_pod_goes", {"number": 2}),
    ],
    "a pod that is not supported waits, and one that is like it fits": [
        come(2, units=UNITS),
        come(units=UNITS, spec=DEVICE_CLAIM),
        come(units=UNITS),
        ("a_pod_goes", {"number": 0}),
    ],
    "an extender reserves the card that is free": [
        come(units=UNITS),
        ("an_extender_reserves_room", {"size": 1, "priority": 10}),
    ],
    "an extender reserves the card that is free, and nobody can be evicted instead": [
        come(units=UNITS - 1, priority=10),
        come(units=1),
        ("an_extender_reserves_room", {"size": 1, "priority": 10}),
    ],
    "the victims of one pod do not leave, and those of another are": [
        come(2, units=UNITS),
        come(units=UNITS, priority=10),
        ("time_passes", {"seconds": 60}),
        come(units=UNITS, priority=5),
        ("time_passes", {"seconds": 60}),
    ],
    "many pods of Jobs wait, and one ends": [
        come(2, units=UNITS),
        come(8, units=UNITS),
        ("a_pod_ends", {"number": 0, "phase": "Succeeded"}),
    ],
    "a group needs both cards": [
        come(2, units=UNITS),
        member(UNITS, UNITS, priority=10),
        goes(),
        come(units=1),
        goes(),
    ],
    "a group needs more than there is": [
        come(units=UNITS),
        come(units=1, priority=10),
        member(UNITS, UNITS, priority=10),
    ],
    "a group has members of two priorities": [
        come(units=UNITS),
        come(units=UNITS - 1, priority=10),
        member(1),
        member(UNITS, priority=10),
    ],
    "a group does not need the member that is not supported": [
        come(2, units=UNITS),
        member(1, priority=10, spec=DEVICE_CLAIM),
        member(UNITS, UNITS, priority=10),
    ],
    "a group loses the room of its member of low priority, and can evict others": [
        SECOND_NODE,
        come(3, units=UNITS),
        member(1, 1, priority=10, least=3),
        come(units=UNITS - 1),
        member(1, least=1),
        come(3, units=1, priority=10),
    ],
    "a group loses the room of its member of low priority, and can evict nobody": [
        come(units=UNITS, priority=10),
        come(units=UNITS),
        SECOND_NODE,
        come(units=UNITS, priority=10),
        come(units=UNITS - 1, priority=10),
        member(1, 1, priority=10, least=3),
        member(1, least=1),
        come(3, units=1, priority=10),
    ],
    "the node of one member dies, and a small pod takes the room of the other": [
        come(2, units=UNITS),
        SECOND_NODE,
        come(units=UNITS, priority=10),
        come(units=UNITS - 1, priority=10),
        member(UNITS, 1, priority=10),
        come(units=1),
        ("a_node_changes", {"name": "m", "change": "unreachable"}),
    ],
    "a group needs the room of a victim whose pod has gone, and may not evict it": [
        SECOND_NODE,
        come(3, units=2),
        come(units=1),
        member(2, 1, 5, priority=10, least=3),
        come(3, units=3, priority=10),
        ("a_pod_goes", {"number": 1}),
        member(3, least=1),
        goes(),
    ],
    "a pod needs the room of a victim whose pod has gone, and may not evict it": [
        come(units=UNITS),
        come(units=UNITS, priority=5),
        come(units=UNITS, cards=2, priority=10),
        ("a_pod_goes", {"number": 0}),
        ("a_pod_goes", {"number": 1}),
        come(units=UNITS),
        come(units=UNITS, cards=2, priority=5),
        goes(),
    ],
    "the card that is being cleared falls ill, and the other is cleared for a lower priority": [
        come(2, units=UNITS),
        come(units=UNITS, priority=10),
        come(units=UNITS, priority=5),
        ("a_node_changes", {"name": "m", "change": "ill"}),
    ],
    "a group fits only if its large members are placed first": [
        come(units=1, cards=2, priority=10),
        come(2, units=1),
        member(1, 2, 2, priority=10, least=3),
        goes(),
    ],
    "a pod waits for victims that do not leave, and its time is over": [
        SECOND_NODE,
        come(2, units=1),
        member(3, 1, UNITS, priority=10, least=1),
        come(3, units=2),
        member(UNITS, priority=10, least=1),
        ("time_passes", {"seconds": 1000}),
        goes(),
    ],
    "a new leader lets a small pod take what was being cleared for a large one": [
        member(1, 1, least=1),
        member(3, least=1),
        ("a_node_changes", {"name": "m", "change": "unreachable"}),
        ("answers_are_lost", {"fates": [Fate.FORBIDDEN], "size": 1}),
        come(units=3, priority=10),
        come(units=1),
        ("a_node_changes", {"name": "m", "change": "good"}),
        ("the_leader_fails", {"late": False}),
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
