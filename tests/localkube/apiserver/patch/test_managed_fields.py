"""managedFields under Updates."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.kinds import Kind
from localkube.apiserver.patch import field_set
from localkube.apiserver.patch.managed_fields import (
    Writer,
    manager_name,
    track_create,
    track_update,
)
from localkube.apiserver.patch.server_side_apply import settle_times
from localkube.apiserver.schema.load import schema_of
from tests.localkube.apiserver.patch.small_schemas import KIND, THING, thing, things

T1, T2 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"


def created(obj: Any, manager: str = "m1", time: str = T1) -> Any:
    obj = orjson.loads(orjson.dumps(obj))
    track_create(obj, Writer(manager, time), KIND, THING)
    return obj


def updated(old: Any, new: Any, writer: Writer, keep: bool = True) -> Any:
    """As after a PUT by a client that sends back what it has read, or (not keep) has not."""
    new = orjson.loads(orjson.dumps(new))
    if keep and "managedFields" in old["metadata"]:
        new["metadata"]["managedFields"] = orjson.loads(
            orjson.dumps(old["metadata"]["managedFields"])
        )
    track_update(old, new, writer, KIND, THING)
    return new


def owned(obj: Any) -> dict[str, Any]:
    return {e["manager"]: e["fieldsV1"] for e in obj["metadata"].get("managedFields", ())}


def test_the_creator_owns_what_it_set() -> None:
    obj = created(thing({"replicas": 1}, labels={"a": "b"}))
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "m1",
            "operation": "Update",
            "apiVersion": "example.com/v1",
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {".": {}, "f:replicas": {}},
            },
        }
    ]


def test_structs_of_a_built_in_kind_are_there_before_anybody() -> None:
    pod: Any = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], "hostname": "h"}}
    kind = Kind("", "v1", "Pod", "pods", "pod", True, (), has_status=True)
    track_create(pod, Writer("m", T1), kind, schema_of("", "v1", "Pod"))
    assert owned(pod)["m"] == {
        "f:spec": {
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}},
            "f:hostname": {},
        }
    }


def test_who_changes_a_field_takes_it_from_all_others() -> None:
    old = created(thing({"replicas": 1, "selector": {"a": "1"}}))
    new = updated(old, thing({"replicas": 2, "selector": {"a": "1"}}), Writer("m2", T2))
    assert owned(new) == {
        "m1": {"f:spec": {".": {}, "f:selector": {}}},
        "m2": {"f:spec": {"f:replicas": {}}},
    }


def test_a_removed_field_is_nobodys_and_leaves_no_entry_to_who_removed_it() -> None:
    old = created(thing({"replicas": 1, "selector": {"a": "1"}}))
    new = updated(old, thing({"selector": {"a": "1"}}), Writer("m2", T2))
    assert owned(new) == {"m1": {"f:spec": {".": {}, "f:selector": {}}}}


def test_an_update_without_change_leaves_no_trace() -> None:
    old = created(thing({"replicas": 1}))
    assert updated(old, thing({"replicas": 1}), Writer("m2", T2)) == old
    assert updated(old, thing({"replicas": 1}), Writer("m1", T2)) == old


def test_one_manager_has_one_entry_per_operation_and_subresource() -> None:
    old = created(thing({"replicas": 1}))
    new = updated(old, thing({"replicas": 2}), Writer("m1", T2))
    assert [entry["time"] for entry in new["metadata"]["managedFields"]] == [T2]
    status = {**thing({"replicas": 2}), "status": {"phase": "P"}}
    last = updated(new, status, Writer("m1", T2, subresource="status"))
    assert [e.get("subresource") for e in last["metadata"]["managedFields"]] == [None, "status"]


def test_clients_that_know_nothing_of_managed_fields_do_not_lose_them() -> None:
    old = created(thing({"replicas": 1}))
    assert owned(updated(old, thing({"replicas": 1}), Writer("m2", T2), keep=False)) == owned(old)


@pytest.mark.parametrize("sent", [[], [{}]])
def test_tracking_can_be_switched_off_and_stays_off(sent: Any) -> None:
    old = created(thing({"replicas": 1}))
    new = updated(old, thing({"replicas": 1}, managedFields=sent), Writer("m2", T2), keep=False)
    assert "managedFields" not in new["metadata"]
    assert "managedFields" not in updated(new, thing({"replicas": 2}), Writer("m2", T2))["metadata"]


def test_well_formed_entries_of_a_client_replace_the_old_ones() -> None:
    old = created(thing({"replicas": 1}))
    row = {
        "manager": "kubectl",
        "operation": "Apply",
        "apiVersion": "example.com/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {".": {}}}},
    }
    new = updated(old, thing({"replicas": 1}, managedFields=[row]), Writer("m2", T2), keep=False)
    assert owned(new) == {"kubectl": {"f:spec": {"f:replicas": {}}}}


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "Zap"},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsV1": {"zz": {}}},
        {"fieldsV1": 3},
    ],
)
def test_malformed_entries_of_a_client_are_ignored(change: Any) -> None:
    old = created(thing({"replicas": 1}))
    row = {**old["metadata"]["managedFields"][0], "manager": "x", **change}
    new = updated(old, thing({"replicas": 1}, managedFields=[row]), Writer("m2", T2), keep=False)
    assert owned(new) == owned(old)


def test_through_a_subresource_entries_cannot_be_set() -> None:
    old = created(thing({"replicas": 1}))
    sent = {**thing({"replicas": 1}, managedFields=[]), "status": {"phase": "P"}}
    new = updated(old, sent, Writer("m2", T2, "status"), keep=False)
    assert set(owned(new)) == {"m1", "m2"}


def test_entries_are_sorted_by_operation_time_and_name() -> None:
    obj = created(thing(labels={"a": "0"}))
    for manager, label, time in (("z", "b", T1), ("y", "c", T2), ("x", "d", T2)):
        labels = {**obj["metadata"]["labels"], label: "1"}
        obj = updated(obj, thing(labels=labels), Writer(manager, time))
    assert list(owned(obj)) == ["m1", "z", "x", "y"]


def test_the_oldest_of_more_than_ten_updaters_are_put_together() -> None:
    obj = created(thing(labels={"l00": "1"}), manager="m00", time="2026-01-01T00:00:00Z")
    for number in range(1, 13):
        labels = {**obj["metadata"]["labels"], f"l{number:02}": "1"}
        writer = Writer(f"m{number:02}", f"2026-01-01T00:00:{number:02}Z")
        obj = updated(obj, thing(labels=labels), writer)
    assert list(owned(obj)) == ["ancient-changes", *(f"m{n:02}" for n in range(4, 13))]
    labels = {".": {}, "f:l00": {}, "f:l01": {}, "f:l02": {}, "f:l03": {}}
    assert owned(obj)["ancient-changes"] == {"f:metadata": {"f:labels": labels}}


@pytest.mark.parametrize(
    ("asked", "agent", "wanted"),
    [
        ("m", "kubectl/v1", "m"),
        ("", "kubectl/v1.35 (linux)", "kubectl"),
        ("", "py\tthon client/1", "python client"),
        ("", "", "unknown"),
        ("", "/1", "unknown"),
        ("", "k" * 200, "k" * 128),
        ("", "é" * 100, "é" * 64),
    ],
)
def test_an_updater_is_named_by_the_query_or_by_its_program(
    asked: str, agent: str, wanted: str
) -> None:
    assert manager_name(asked, agent) == wanted


def test_times_alone_are_no_change() -> None:
    live = created(thing({"replicas": 1}))
    new = created(thing({"replicas": 1}), time=T2)
    settle_times(live, new)
    assert new == live
    other = created(thing({"replicas": 2}), time=T2)
    settle_times(live, other)
    assert other["metadata"]["managedFields"][0]["time"] == T2


writes = st.lists(st.tuples(st.sampled_from(["m1", "m2", "m3"]), things), min_size=1, max_size=5)


@given(writes)
def test_every_field_of_an_object_has_exactly_one_updater(history: Any) -> None:
    (manager, first), *rest = history
    obj = created(first, manager)
    for manager, new in rest:
        if not obj["metadata"].get("managedFields"):
            return  # nothing was ever set: tracking is off
        obj = updated(obj, new, Writer(manager, T2))
    paths = [set(field_set.paths(fields)) for fields in owned(obj).values()]
    everything = set(field_set.paths(owned(created(obj, "one")).get("one", {})))
    assert sum(map(len, paths)) == len(set().union(*paths))
    if owned(obj):
        assert set().union(*paths) == everything
