"""ClusterState: what it keeps of the API's objects, and what it drops when they are deleted."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

import orjson
import pytest

from gpupool.contract.names import ANNOTATION_ALLOCATION
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.follow import follow, read_cluster
from kubeclient.client import Kube
from kubeclient.objects import Obj
from tests.scheduler.model_api import ModelApi, started


class Changes:
    """Counts how often the state says that there may be something to do."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def empty_state(changes: Changes | None = None) -> ClusterState:
    return ClusterState({"gpupool-scheduler"}, "best-fit", changes or Changes(), lambda: 0.0)


def named(name: str, **more: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": "default", **more}}


def budget(allowed: int) -> Obj:
    selector = {"matchLabels": {"app": "a"}}
    return {
        **named("b", uid="u", generation=1),
        "spec": {"selector": selector, "minAvailable": 1},
        "status": {"disruptionsAllowed": allowed, "observedGeneration": 1},
    }


def test_a_disruption_budget_counts_until_it_is_deleted() -> None:
    state = empty_state()
    state.budget_changed(None, budget(1))
    assert [each.allowed for each in state.budgets.values()] == [1]
    state.budget_changed(budget(1), budget(0))
    assert [each.allowed for each in state.budgets.values()] == [0]
    state.budget_changed(budget(0), None)
    assert not state.budgets
    state.budget_changed(budget(0), None)  # a mirror may say the same thing twice
    assert not state.budgets


def test_a_budget_of_which_nothing_is_known_changes_nothing() -> None:
    state = empty_state()
    state.budget_changed(None, None)
    assert not state.budgets


def test_a_deleted_namespace_has_no_labels_any_more_and_wakes_nobody() -> None:
    changes = Changes()
    state = empty_state(changes)
    state.namespace_changed(None, named("team", labels={"stage": "test"}))
    assert changes.count == 1
    state.namespace_changed(named("team"), None)
    state.namespace_changed(None, None)
    assert changes.count == 1


def test_deleted_volumes_claims_and_classes_are_forgotten() -> None:
    state = empty_state()
    handlers = (state.volume_claim_changed, state.volume_changed, state.class_changed)
    kept = (state.storage.claims, state.storage.volumes, state.storage.classes)
    for handler in handlers:
        handler(None, named("x"))
    assert [len(each) for each in kept] == [1, 1, 1]
    for handler in handlers:
        handler(named("x"), None)
        handler(None, None)
    assert [len(each) for each in kept] == [0, 0, 0]


def test_a_node_that_is_reported_again_unchanged_wakes_nobody() -> None:
    api, changes = ModelApi(), Changes()
    api.set_node("n", ill=False)
    state = empty_state(changes)
    state.node_changed(None, api.nodes["n"])
    woken = changes.count
    state.node_changed(api.nodes["n"], api.nodes["n"])
    assert changes.count == woken


def test_an_assignment_that_does_not_exist_cannot_be_refused() -> None:
    changes = Changes()
    state = empty_state(changes)
    state.refused("nobody")
    assert changes.count == 0


@pytest.mark.parametrize("text", [None, "", "no JSON", '{"version": 99}'])
def test_a_bound_pod_with_no_readable_allocation_may_hold_any_card(text: str | None) -> None:
    api = ModelApi()
    api.set_node("n", ill=False)
    api.add_pod("p", 1, priority=0)
    pod = api.pods["p"]
    pod["spec"]["nodeName"] = "n"
    if text is not None:
        pod["metadata"]["annotations"] = {ANNOTATION_ALLOCATION: text}
    state = started(api, lambda: 0.0).state
    place = state.ledger.assignment(pod["metadata"]["uid"])
    assert place is not None
    assert (place.node, place.allocation.containers) == ("n", ())
    held = state.cluster.held(pod["metadata"]["uid"])
    assert held is not None
    assert [(hold.uuid, hold.possible) for hold in held.cards] == [("n-0", True), ("n-1", True)]


class OnePod:
    """A server with one pod that has no spec, and nothing else."""

    async def call(
        self, method: str, path: str, *, query: Any, headers: Any, body: bytes
    ) -> tuple[int, bytes]:
        metadata = {"name": "broken", "namespace": "default", "resourceVersion": "1", "uid": "u"}
        items = [{"metadata": metadata}] if path.endswith("/pods") else []
        return 200, orjson.dumps({"metadata": {"resourceVersion": "5"}, "items": items})

    async def stream(self, path: str, *, query: Any, headers: Any) -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""


async def test_an_object_that_cannot_be_read_is_logged_by_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = empty_state()
    with caplog.at_level(logging.ERROR):
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follow(Kube(OnePod()), state, tasks))
            await following
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                if task.get_name().startswith("mirror-"):
                    task.cancel()
    assert [getattr(record, "object", "") for record in caplog.records] == ["default/broken"]
    [found] = state.findings.take()
    assert (found.about["metadata"]["name"], found.reason) == ("broken", "NotUnderstood")


async def test_a_program_that_only_reads_sees_all_other_objects() -> None:
    assert (await read_cluster(Kube(OnePod()))).pending == {}
