"""Strategic merge patch: lists with keys, directives, order and refusals."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.patch.strategic_merge import apply_strategic
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.patch.small_schemas import (
    THING,
    container,
    containers,
    letters,
    some,
    texts,
    thing,
    things,
)

LIVE = [container("c", image="x"), container("d", image="x"), container("e", image="x")]


def patched(spec: Any, patch: Any) -> Any:
    return apply_strategic(thing(spec), {"spec": patch}, THING)["spec"]


def names(patch: Any, live: Any = LIVE) -> str:
    """The order of the containers after a patch of the spec."""
    found = patched({"containers": live}, patch)["containers"]
    return "".join(item["name"] for item in found)


def refusal(spec: Any, patch: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        patched(spec, patch)
    return caught.value.code, str(caught.value)


def test_elements_merge_by_key_and_new_ones_come_first() -> None:
    found = patched(
        {"containers": LIVE}, {"containers": [{"name": "f"}, {"name": "d", "args": ["a"]}]}
    )
    assert found["containers"] == [
        container("f"),
        container("c", image="x"),
        container("d", image="x", args=["a"]),
        container("e", image="x"),
    ]


def test_lists_without_merge_strategy_are_replaced() -> None:
    spec = {"tolerations": [{"key": "a"}]}
    assert patched(spec, {"tolerations": [{"key": "b"}]}) == {"tolerations": [{"key": "b"}]}


def test_lists_of_scalars_merge_as_sets() -> None:
    obj = thing(finalizers=["x", "y"])
    found = apply_strategic(obj, {"metadata": {"finalizers": ["z", "x"]}}, THING)
    assert found["metadata"]["finalizers"] == ["z", "x", "y"]


@pytest.mark.parametrize(
    ("patch", "wanted"),
    [
        ({"replicas": 2}, {"replicas": 2, "strategy": {"type": "R", "rolling": {"surge": 1}}}),
        ({"strategy": None}, {"replicas": 1}),
        ({"selector": None}, {"replicas": 1, "strategy": {"type": "R", "rolling": {"surge": 1}}}),
        ({"strategy": {"rolling": None}}, {"replicas": 1, "strategy": {"type": "R"}}),
        (
            {"strategy": {"$retainKeys": ["type"], "type": "S"}},
            {"replicas": 1, "strategy": {"type": "S"}},
        ),
        (
            {"strategy": {"$patch": "replace", "type": "S"}},
            {"replicas": 1, "strategy": {"type": "S"}},
        ),
        ({"strategy": {"$patch": "delete"}}, {"replicas": 1, "strategy": {}}),
        ({"$patch": "replace", "replicas": 3}, {"replicas": 3}),
    ],
)
def test_maps_merge_unless_told_otherwise(patch: Any, wanted: Any) -> None:
    spec = {"replicas": 1, "strategy": {"type": "R", "rolling": {"surge": 1}}}
    assert patched(spec, patch) == wanted


def test_a_map_may_be_declared_to_be_replaced() -> None:
    assert patched({"whole": {"a": "1"}}, {"whole": {"b": "2"}}) == {"whole": {"b": "2"}}


def test_maps_of_which_nothing_is_known_merge() -> None:
    spec = {"extra": {"a": {"b": 1, "c": [1]}, "z": 1}}
    patch = {"extra": {"a": {"b": None, "c": [2]}, "y": {"n": None}}}
    assert patched(spec, patch) == {"extra": {"a": {"c": [2]}, "z": 1, "y": {}}}


@pytest.mark.parametrize(
    ("patch", "wanted"),
    [
        ({"containers": [{"name": "d", "$patch": "delete"}]}, "ce"),
        ({"containers": [{"name": "z", "$patch": "delete"}]}, "cde"),
        ({"containers": [{"name": "e"}, {"name": "f"}, {"$patch": "replace"}]}, "ef"),
        ({"$setElementOrder/containers": [{"name": "e"}, {"name": "c"}]}, "dec"),
        ({"$setElementOrder/containers": [{"name": "e"}, {"name": "d"}, {"name": "c"}]}, "edc"),
        (
            {
                "$setElementOrder/containers": [{"name": "e"}, {"name": "f"}],
                "containers": [{"name": "f"}, {"name": "c", "$patch": "delete"}],
            },
            "def",
        ),
        # The new one comes in the place of the deleted one, so after those that stay.
        (
            {
                "$setElementOrder/containers": [{"name": "f"}],
                "containers": [{"name": "f"}, {"name": "c", "$patch": "delete"}],
            },
            "def",
        ),
        (
            {
                "$setElementOrder/containers": [{"name": "f"}],
                "containers": [{"name": "f"}],
            },
            "fcde",
        ),
        ({"$setElementOrder/tolerations": []}, "cde"),
    ],
)
def test_directives_in_lists(patch: Any, wanted: str) -> None:
    assert names(patch) == wanted


def test_values_leave_a_list_of_scalars() -> None:
    obj = thing(finalizers=["x", "y", "z"])
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x", "n"], "finalizers": ["w"]}}
    assert apply_strategic(obj, patch, THING)["metadata"]["finalizers"] == ["w", "y", "z"]


def test_directives_do_not_reach_what_is_new() -> None:
    patch = {
        "containers": [{"name": "n", "env": [{"name": "A", "$patch": "delete"}, {"name": "B"}]}]
    }
    found = patched({"containers": LIVE}, patch)["containers"][0]
    assert found == {"name": "n", "env": [{"name": "B"}]}


@pytest.mark.parametrize(
    ("patch", "code", "said"),
    [
        (
            {"containers": [{"image": "y", "args": [1, None]}]},
            500,
            "map: map[args:[1 <nil>] image:y] does not contain declared merge key: name",
        ),
        (
            {"containers": [{"name": "c", "$patch": "wat"}]},
            500,
            "unknown patch type: wat in map: map[$patch:wat name:c]",
        ),
        ({"$patch": "merge"}, 500, "unknown patch type: merge in map: map[$patch:merge]"),
        (
            {"containers": [{"name": "c", "$patch": "merge"}]},
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        ({"$retainKeys": "x"}, 400, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["a"], "replicas": 1}, 400, "invalid patch format of retainKeys"),
        (
            {"$deleteFromPrimitiveList": ["x"]},
            400,
            "invalid patch format of primitive list",
        ),
        ({"$setElementOrder": []}, 400, "invalid patch format of setElementOrder list"),
        (
            {"$setElementOrder/containers": 3},
            500,
            "expected a []interface {}, but received a int64",
        ),
        (
            {"$setElementOrder/containers": [{"name": "z"}], "containers": [{"name": "c"}]},
            500,
            "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n"
            "[map[name:z]]\n",
        ),
        (
            {"$setElementOrder/unknown": ["x"]},
            500,
            'unable to find api field in struct Spec for the json field "unknown"',
        ),
        (
            {"containers": [["x"]]},
            500,
            "list element types are not identical: [[map[image:x name:c]] [[x]]]",
        ),
    ],
)
def test_wrong_directives_are_refused_in_kubernetes_words(patch: Any, code: int, said: str) -> None:
    assert refusal({"containers": LIVE[:1]}, patch) == (code, said)


def test_a_patch_must_be_an_object() -> None:
    with pytest.raises(ApiError) as caught:
        apply_strategic({}, b"[]", THING)
    assert str(caught.value) == (
        "json: cannot unmarshal array into Go value of type map[string]interface {}"
    )


def test_ports_of_a_real_pod_merge_by_container_port() -> None:
    pod = {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "name": "p"}]}]}}
    port = {"containerPort": 80, "hostPort": 8080}
    patch = {"spec": {"containers": [{"name": "c", "ports": [port]}]}}
    found = apply_strategic(pod, patch, schema_of("", "v1", "Pod"))
    merged = {"containerPort": 80, "hostPort": 8080, "name": "p"}
    assert found["spec"]["containers"][0]["ports"] == [merged]


orders = st.permutations([{"name": n} for n in "cdef"]).map(lambda all_: all_[:3])
spec_patches = some(
    replicas=st.none() | st.integers(1, 2),
    containers=containers,
    selector=texts | st.none(),
    strategy=some(type=letters | st.none()),
    extra=some(a=letters | st.none(), b=texts),
)


def in_order(spec: Any) -> Any:
    order = [{"name": item["name"]} for item in spec.get("containers", ())]
    return {**spec, "$setElementOrder/containers": order}


@given(things, spec_patches | spec_patches.map(in_order))
def test_twice_is_once_and_nothing_is_changed_in_place(obj: Any, spec_patch: Any) -> None:
    patch = {"spec": spec_patch}
    before = orjson.dumps([obj, patch])
    once = apply_strategic(obj, patch, THING)
    assert apply_strategic(once, patch, THING) == once
    assert orjson.dumps([obj, patch]) == before


@given(st.permutations(LIVE), orders)
def test_named_elements_come_in_the_order_given_and_the_others_in_theirs(
    live: Any, order: Any
) -> None:
    found = names({"$setElementOrder/containers": order}, live)
    wanted = "".join(item["name"] for item in order)
    assert "".join(n for n in found if n in wanted) == "".join(n for n in wanted if n in "cde")
    others = "".join(item["name"] for item in live if item["name"] not in wanted)
    assert "".join(n for n in found if n not in wanted) == others
