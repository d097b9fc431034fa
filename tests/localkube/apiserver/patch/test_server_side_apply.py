"""Server-side apply: merging, ownership, conflicts and refusals."""

import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from localkube.apiserver.kinds import Kind
from localkube.apiserver.patch import field_set
from localkube.apiserver.patch.field_compare import compared
from localkube.apiserver.patch.field_set import FieldSet
from localkube.apiserver.patch.field_walk import declared
from localkube.apiserver.patch.managed_fields import Writer, track_update
from localkube.apiserver.patch.server_side_apply import apply
from localkube.apiserver.patch.shape import root_of
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.patch.desk import without_nulls
from tests.localkube.apiserver.patch.small_schemas import (
    KIND,
    THING,
    container,
    thing,
    things,
)

T1, T2 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"
ROOT = root_of(THING, KIND, "")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def applied(
    live: Any, config: Any, manager: str = "m1", *, force: bool = False, time: str = T1
) -> Any:
    result = apply(live, config, Writer(manager, time), KIND, THING, force=force)
    return without_nulls(result)


def updated(old: Any, new: Any, manager: str) -> Any:
    new = {**new, "metadata": {**new["metadata"]}}
    track_update(old, new, Writer(manager, T2), KIND, THING)
    return new


def owned(obj: Any) -> dict[str, Any]:
    return {e["manager"]: e["fieldsV1"] for e in obj["metadata"].get("managedFields", ())}


def content(obj: Any) -> Any:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


def refusal(live: Any, config: Any, manager: str = "m1") -> ApiError:
    with pytest.raises(ApiError) as caught:
        applied(live, config, manager)
    return caught.value


def test_the_first_apply_creates() -> None:
    config = thing({"replicas": 1}, labels={"a": "b"})
    obj = applied(None, config)
    assert content(obj) == config
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "m1",
            "operation": "Apply",
            "apiVersion": "example.com/v1",
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}}},
        }
    ]


def test_what_is_no_longer_applied_goes_away() -> None:
    live = applied(
        None, thing({"replicas": 1, "selector": {"a": "b"}}, labels={"a": "b", "c": "d"})
    )
    obj = applied(live, thing({"selector": {"a": "b"}}, labels={"a": "b"}), time=T2)
    assert content(obj) == thing({"selector": {"a": "b"}}, labels={"a": "b"})
    assert obj["metadata"]["managedFields"][0]["time"] == T2


def test_what_others_own_too_stays() -> None:
    live = applied(None, thing(labels={"a": "1", "b": "1"}))
    live = applied(live, thing(labels={"a": "1"}), "m2")
    obj = applied(live, thing())
    assert content(obj) == thing(labels={"a": "1"})
    assert set(owned(obj)) == {"m2"}


def test_lists_are_laid_over_one_another_by_key() -> None:
    live = applied(None, thing({"containers": [container("c", image="x"), container("d")]}))
    obj = applied(live, thing({"containers": [container("e"), container("c", args=["a"])]}), "m2")
    assert obj["spec"]["containers"] == [
        container("e"),
        container("c", image="x", args=["a"]),
        container("d"),
    ]


@pytest.mark.parametrize(
    ("live", "config", "wanted"),
    [
        ("abcd", "ca", "bcda"),
        ("abcd", "dc", "abdc"),
        ("abcd", "xb", "axbcd"),
        ("abcd", "bx", "abcdx"),
        ("abcd", "dxa", "bcdxa"),
        ("abc", "cxb", "acxb"),
        ("abc", "xcyaz", "bxcyaz"),
        ("abcde", "eca", "bdeca"),
    ],
)
def test_the_applied_order_holds_and_the_rest_stays_near_its_place(
    live: str, config: str, wanted: str
) -> None:
    before = applied(None, thing({"containers": [container(name) for name in live]}))
    after = applied(before, thing({"containers": [container(name) for name in config]}), "m2")
    assert "".join(item["name"] for item in after["spec"]["containers"]) == wanted


def test_elements_of_lists_and_sets_are_given_up_one_by_one() -> None:
    config = thing({"containers": [container("c"), container("d")]}, finalizers=["x/x", "y/y"])
    live = applied(None, config)
    live = applied(live, thing(finalizers=["z/z"]), "m2")
    obj = applied(live, thing({"containers": [container("d")]}, finalizers=["y/y"]))
    assert content(obj) == thing({"containers": [container("d")]}, finalizers=["y/y", "z/z"])


def test_atomic_values_are_owned_whole() -> None:
    live = applied(None, thing({"selector": {"a": "1"}}))
    assert refusal(live, thing({"selector": {"b": "1"}}), "m2").code == 409
    forced = applied(live, thing({"selector": {"b": "1"}}), "m2", force=True)
    assert forced["spec"] == {"selector": {"b": "1"}}
    assert set(owned(forced)) == {"m2"}


def test_an_apply_without_effect_changes_nothing() -> None:
    config = thing({"replicas": 1, "containers": [container("c", ports=[{"port": 80}])]})
    live = applied(None, config)
    assert applied(live, config, time=T2) == live


def test_a_new_co_owner_without_effect_has_no_time() -> None:
    live = applied(None, thing({"replicas": 1}))
    obj = applied(live, thing({"replicas": 1}), "m2", time=T2)
    assert [(e["manager"], e.get("time")) for e in obj["metadata"]["managedFields"]] == [
        ("m2", None),
        ("m1", T1),
    ]


def test_one_conflict_is_told_in_one_line() -> None:
    live = updated(applied(None, thing({"replicas": 1})), thing({"replicas": 2}), "scaler")
    error = refusal(live, thing({"replicas": 1}))
    assert (error.code, error.reason) == (409, "Conflict")
    assert str(error) == (
        'Apply failed with 1 conflict: conflict with "scaler" using example.com/v1: .spec.replicas'
    )
    assert error.status["details"] == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "scaler" using example.com/v1',
                "field": ".spec.replicas",
            }
        ]
    }


def test_several_conflicts_are_told_by_manager() -> None:
    live = applied(None, thing({"replicas": 1, "containers": [container("c", image="x")]}), "m2")
    live = updated(live, thing(live["spec"], labels={"a": "1"}), "kubectl-edit")
    config = thing({"replicas": 2, "containers": [container("c", image="y")]}, labels={"a": "2"})
    error = refusal(live, config)
    assert str(error) == (
        'Apply failed with 3 conflicts: conflicts with "kubectl-edit" using example.com/v1:\n'
        "- .metadata.labels.a\n"
        'conflicts with "m2":\n'
        "- .spec.replicas\n"
        '- .spec.containers[name="c"].image'
    )
    assert len(error.status["details"]["causes"]) == 3


def test_a_conflict_names_the_subresource() -> None:
    live = {**applied(None, thing()), "status": {"phase": "A"}}
    writer = Writer("kubelet", T1, "status")
    config = {**thing(), "status": {"phase": "B"}}
    live = apply(live, config, writer, KIND, THING, force=True)
    config = {**thing(), "status": {"phase": "C"}}
    with pytest.raises(ApiError) as caught:
        apply(live, config, Writer("m", T1, "status"), KIND, THING, force=False)
    assert str(caught.value).endswith(
        'conflict with "kubelet" with subresource "status": .status.phase'
    )


def test_what_was_there_before_the_first_apply_belongs_to_the_past() -> None:
    obj = applied(thing({"replicas": 1}, labels={"a": "b"}), thing({"replicas": 1}))
    assert owned(obj) == {
        "m1": {"f:spec": {"f:replicas": {}}},
        "before-first-apply": {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {".": {}, "f:replicas": {}},
        },
    }
    assert refusal(thing({"replicas": 1}), thing({"replicas": 2})).code == 409


def test_a_manager_that_gives_up_all_leaves_the_name() -> None:
    live = applied(None, thing(labels={"a": "b"}))
    obj = applied(live, {"apiVersion": "example.com/v1", "kind": "Thing"})
    assert obj == thing()


def test_status_cannot_be_claimed_through_the_main_resource() -> None:
    obj = applied(None, {**thing({"replicas": 1}), "status": {"phase": "P"}})
    assert owned(obj) == {"m1": {"f:spec": {"f:replicas": {}}}}


@pytest.mark.parametrize(
    ("config", "code", "said"),
    [
        (
            thing(managedFields=[]),
            400,
            "metadata.managedFields must be nil",
        ),
        ({**thing(), "kind": "Other"}, 400, "invalid object type: example.com/v1, Kind=Other"),
        ({**thing(), "apiVersion": "v2"}, 400, "invalid object type: /v2, Kind=Thing"),
        ({"metadata": {"name": "t"}}, 400, "invalid object type: /, Kind="),
        (thing({"nope": 1}), 500, ".spec.nope: field not declared in schema"),
        (
            thing({"replicas": "1"}),
            500,
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            thing(labels={"a": 1}),
            500,
            ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (thing("x"), 500, ".spec: expected map, got &{x}"),
        (thing({"containers": "x"}), 500, ".spec.containers: expected list, got &{x}"),
        (
            thing({"containers": [{"image": "x"}]}),
            500,
            ".spec.containers: element 0: associative list with keys has an element that omits all"
            ' key fields ["name"] (and doesn\'t have default values for any key fields)',
        ),
        (
            thing({"containers": [container("c"), container("c")]}),
            500,
            '.spec.containers: duplicate entries for key [name="c"]',
        ),
        (
            thing(finalizers=["x", "x"]),
            500,
            '.metadata.finalizers: duplicate entries for key [="x"]',
        ),
        (
            thing({"replicas": "1", "tolerations": [{"key": True}]}),
            500,
            "errors:\n  .spec.replicas: expected numeric (int or float), got string\n"
            "  .spec.tolerations[0].key: expected string, got"
            " &value.valueUnstructured{Value:true}",
        ),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(config: Any, code: int, said: str) -> None:
    error = refusal(None, config)
    if code == 500:
        said = f"failed to create typed patch object (/t; example.com/v1, Kind=Thing): {said}"
    assert (error.code, str(error)) == (code, said)


def configmap(data: Any, **annotations: str) -> Any:
    obj: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    if annotations:
        obj["metadata"]["annotations"] = annotations
    return obj


def test_kubectl_may_take_over_from_client_side_apply() -> None:
    kind = Kind("", "v1", "ConfigMap", "configmaps", "configmap", True, ())
    schema = schema_of("", "v1", "ConfigMap")
    annotation = orjson.dumps(configmap({"a": "1", "b": "1"})).decode()
    live = configmap({"a": "1", "b": "2"}, **{LAST_APPLIED: annotation})
    writer = Writer("kubectl", T1)
    obj = apply(live, configmap({"a": "3"}), writer, kind, schema, force=False)
    assert obj["data"] == {"a": "3", "b": "2"}
    refreshed = orjson.loads(obj["metadata"]["annotations"][LAST_APPLIED])
    assert refreshed == configmap({"a": "3"})
    # Somebody has changed b since: that is a conflict, for kubectl too.
    with pytest.raises(ApiError) as caught:
        apply(live, configmap({"a": "3", "b": "3"}), writer, kind, schema, force=False)
    assert [cause["field"] for cause in caught.value.status["details"]["causes"]] == [".data.b"]
    with pytest.raises(ApiError):
        apply(live, configmap({"a": "3"}), Writer("other", T1), kind, schema, force=False)


steps = st.lists(
    st.tuples(st.sampled_from(["m1", "m2", "updater"]), things, st.booleans()),
    min_size=1,
    max_size=5,
)


def played(history: Any) -> Any:
    """An object with a past: applies, some of them forced, and updates."""
    live: Any = None
    for manager, config, force in history:
        if manager != "updater":
            with contextlib.suppress(ApiError):
                live = applied(live, config, manager, force=force)
        elif live is not None:
            live = updated(live, config, manager)
    return live if live is not None else applied(None, thing())


@given(steps, things)
def test_applying_twice_is_applying_once(history: Any, config: Any) -> None:
    live = played(history)
    before = orjson.dumps([live, config])
    once = applied(live, config, force=True)
    assert applied(once, config, time=T2) == once
    assert orjson.dumps([live, config]) == before


@given(steps, things)
def test_after_an_apply_its_manager_owns_what_it_applied_and_has_it(
    history: Any, config: Any
) -> None:
    obj = applied(played(history), config, force=True)
    assert owned(obj).get("m1", {}) == (declared(ROOT, config) or {})
    assert field_set.covers(everything(obj), owned(obj).get("m1", {}))


@given(steps, things)
def test_there_is_a_conflict_iff_another_manager_owns_what_would_change(
    history: Any, config: Any
) -> None:
    live = played(history)
    # Where nobody owns anything any more, everything belongs to whoever came before the apply.
    assume(live is None or owned(live))
    forced = applied(live, config, force=True)
    lost = [
        manager
        for manager, fields in owned(live).items()
        if manager != "m1"
        for path in field_set.paths(field_set.difference(fields, owned(forced).get(manager, {})))
        # What was removed is lost without a conflict: it is nobody's now.
        if has(forced, path)
    ]
    if lost:
        assert refusal(live, config).code == 409
    else:
        assert applied(live, config) == forced


def everything(obj: Any) -> FieldSet:
    return compared(ROOT, {"metadata": {}}, obj)[0] or {}


def only(path: tuple[str, ...]) -> FieldSet:
    fields: FieldSet = {}
    for element in reversed(path):
        fields = {element: fields}
    return fields


def has(obj: Any, path: tuple[str, ...]) -> bool:
    return field_set.covers(everything(obj), only(path))


@given(steps, things)
def test_what_is_removed_was_the_appliers_alone(history: Any, config: Any) -> None:
    live = played(history)
    obj = applied(live, config, force=True)
    others = [fields for manager, fields in owned(live).items() if manager != "m1"]
    for path in field_set.paths(owned(live).get("m1", {})):
        co_owned = any(field_set.covers(fields, only(path)) for fields in others)
        # An element goes with all that is in it, if nobody else owns the element itself.
        if co_owned and not any(element.startswith("k:") for element in path):
            assert has(obj, path)
