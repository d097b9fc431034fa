"""Workloads that are scaled to zero can always be restored; what cannot be is left alone."""

from typing import Any
from unittest.mock import AsyncMock

import pytest
from click import ClickException
from hypothesis import given
from hypothesis import strategies as st

from gpupool.cli.idle_scaling import scale_to_zero
from gpupool.history.parking import Change, No, restored, to_zero
from kubeclient.objects import Obj

NOTE = "gpupool.io/idle-replicas"


def workload(replicas: int | None = 3, **annotations: str) -> Obj:
    spec = {} if replicas is None else {"replicas": replicas}
    return {"metadata": {"resourceVersion": "7", "annotations": annotations}, "spec": spec}


def patched(obj: Obj, change: Change) -> Obj:
    """As a merge patch does."""
    notes = {**obj["metadata"]["annotations"], **change.patch["metadata"]["annotations"]}
    kept = {key: value for key, value in notes.items() if value is not None}
    metadata = {**obj["metadata"], "annotations": kept}
    return {"metadata": metadata, "spec": {**obj["spec"], **change.patch["spec"]}}


@given(st.one_of(st.none(), st.integers(1, 100_000)), st.integers(1, 4))
def test_to_zero_and_back_is_what_it_was_before(replicas: int | None, times: int) -> None:
    before = obj = workload(replicas, other="stays")
    for _ in range(times):
        down = to_zero(obj)
        assert isinstance(down, Change)
        obj = patched(obj, down)
        assert obj["spec"]["replicas"] == 0
        assert isinstance(to_zero(obj), No)  # the note is never overwritten
        up = restored(obj)
        assert isinstance(up, Change)
        obj = patched(obj, up)
        assert obj["spec"]["replicas"] == (1 if replicas is None else replicas)
        assert obj["metadata"] == before["metadata"]


def test_the_note_and_the_scale_are_one_write_of_this_version() -> None:
    change = to_zero(workload())
    assert isinstance(change, Change)
    notes = {NOTE: "3", "gpupool.io/idle-warned": None}
    assert change.patch["metadata"] == {"resourceVersion": "7", "annotations": notes}
    assert change.patch["spec"] == {"replicas": 0}


def test_what_another_object_controls_is_left_alone() -> None:
    obj = workload()
    obj["metadata"]["ownerReferences"] = [{"controller": True, "kind": "Notebook", "name": "n"}]
    assert isinstance(to_zero(obj), No)
    assert isinstance(to_zero(workload(0)), No)


def test_a_workload_that_somebody_has_scaled_meanwhile_keeps_that() -> None:
    change = restored(workload(5, **{NOTE: "3"}))
    assert isinstance(change, Change)
    assert change.replicas == 5


def test_a_workload_that_was_restored_by_kubectl_scale_can_be_scaled_to_zero_again() -> None:
    change = to_zero(workload(5, **{NOTE: "3"}))
    assert isinstance(change, Change)
    assert change.patch["metadata"]["annotations"][NOTE] == "5"


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "9999999", "٣"])
def test_a_damaged_note_restores_nothing(text: str) -> None:
    assert isinstance(restored(workload(0, **{NOTE: text})), No)


@pytest.mark.parametrize(
    ("name", "running", "words"),
    [
        ("DaemonSet/x", ["a/x-0/c"], "nothing else can be restored"),
        ("Deployment", ["a/x-0/c"], "Wanted Deployment/NAME or StatefulSet/NAME"),
        ("Deployment/x", ["a/x-0/c"], "a/x-0/c is not idle"),
        ("Deployment/x", [], "none of its pods holds a card"),
    ],
)
async def test_a_workload_of_which_one_pod_works_is_left_alone(
    name: str, running: list[str], words: str
) -> None:
    kube: Any = AsyncMock()  # the workload is there
    with pytest.raises(ClickException, match=words):
        await scale_to_zero(kube, name, "a", [], running)
