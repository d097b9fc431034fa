"""JSON merge patch: the laws of RFC 7386."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.patch.merge_patch import apply_merge_patch
from localkube.apiserver.status import ApiError


@pytest.mark.parametrize(
    ("obj", "patch", "wanted"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b"}, {"c": None}, {"a": "b"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": ["b"]}, {"a": ["c", "d"]}, {"a": ["c", "d"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": "b"}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_rfc(obj: Any, patch: Any, wanted: Any) -> None:
    assert apply_merge_patch(obj, patch) == wanted
    assert apply_merge_patch(obj, orjson.dumps(patch)) == wanted


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (
            b"[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type"
            " map[string]interface {}",
        ),
        (
            b"{",
            "error decoding patch: invalid JSON: unexpected end of data: line 1 column 2 (char 1)",
        ),
        (b"null", "Invalid JSON Patch"),
    ],
)
def test_what_is_no_merge_patch_is_a_bad_request(patch: bytes, said: str) -> None:
    with pytest.raises(ApiError) as caught:
        apply_merge_patch({}, patch)
    assert (caught.value.code, str(caught.value)) == (400, said)


def test_a_patch_as_deep_as_a_well_is_refused() -> None:
    patch: dict[str, Any] = {}
    for _ in range(100_000):
        patch = {"a": patch}
    with pytest.raises(ApiError) as caught:
        apply_merge_patch({}, patch)
    assert caught.value.code == 400
    while patch:  # Python would recurse to free it
        patch = patch.pop("a")


def test_the_metadata_of_the_result_is_its_own() -> None:
    obj = {"metadata": {"name": "c"}}
    apply_merge_patch(obj, {})["metadata"]["name"] = "d"
    assert obj == {"metadata": {"name": "c"}}


leaves = st.sampled_from(["1", 2, True, ["x"]])
keys = st.sampled_from("abc")
objects = st.recursive(
    st.dictionaries(keys, leaves, max_size=3), lambda inner: st.dictionaries(keys, inner | leaves)
)
patches = st.recursive(
    st.dictionaries(keys, leaves | st.none(), max_size=3),
    lambda inner: st.dictionaries(keys, inner | leaves | st.none()),
)


@given(objects, patches)
def test_twice_is_once_and_nothing_is_changed_in_place(obj: Any, patch: Any) -> None:
    before = orjson.dumps([obj, patch])
    once = apply_merge_patch(obj, patch)
    assert apply_merge_patch(once, patch) == once
    assert orjson.dumps([obj, patch]) == before


@given(objects)
def test_an_object_without_nulls_patches_nothing_to_itself(obj: Any) -> None:
    assert apply_merge_patch({}, obj) == obj
    assert apply_merge_patch(obj, {}) == obj
    assert apply_merge_patch(obj, obj) == obj
    assert apply_merge_patch(obj, dict.fromkeys(obj)) == {}
