"""JSON patch: RFC 6902 as Kubernetes has it."""

import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.patch.json_patch import apply_json_patch
from localkube.apiserver.status import ApiError

OBJ = {"metadata": {"finalizers": ["a", "b"]}, "data": {"a": "1"}}
REJECTED = "the server rejected our request due to an error in our request"


def refusal(patch: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        apply_json_patch(OBJ, patch)
    return caught.value


@pytest.mark.parametrize(
    ("patch", "path", "wanted"),
    [
        ([{"op": "add", "path": "/data/b", "value": "2"}], ("data",), {"a": "1", "b": "2"}),
        ([{"op": "remove", "path": "/data/a"}], ("data",), {}),
        ([{"op": "replace", "path": "/data/a", "value": "2"}], ("data",), {"a": "2"}),
        ([{"op": "move", "from": "/data/a", "path": "/data/b"}], ("data",), {"b": "1"}),
        ([{"op": "copy", "from": "/data/a", "path": "/data/b"}], ("data",), {"a": "1", "b": "1"}),
        (
            [{"op": "add", "path": "/metadata/finalizers/-", "value": "c"}],
            ("metadata", "finalizers"),
            ["a", "b", "c"],
        ),
        (
            [{"op": "add", "path": "/metadata/finalizers/0", "value": "c"}],
            ("metadata", "finalizers"),
            ["c", "a", "b"],
        ),
        # As Kubernetes has it, beyond the letter of the RFC.
        ([{"op": "replace", "path": "/data/b", "value": "2"}], ("data",), {"a": "1", "b": "2"}),
        ([{"op": "add", "path": "/data/b"}], ("data",), {"a": "1", "b": None}),
        ([], ("data",), {"a": "1"}),
        (b"null", ("data",), {"a": "1"}),
    ],
)
def test_operations_change_a_copy(patch: Any, path: tuple[str, ...], wanted: Any) -> None:
    found: Any = apply_json_patch(OBJ, patch)
    for key in path:
        found = found[key]
    assert found == wanted
    assert OBJ == {"metadata": {"finalizers": ["a", "b"]}, "data": {"a": "1"}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "test", "path": "/data/b", "value": None},
        {"op": "remove", "path": "/data/b"},
        {"op": "add", "path": "/nothing/b", "value": 1},
        {"op": "replace", "path": "/metadata/finalizers/7", "value": "x"},
        {"op": "add", "path": "/metadata/finalizers/x", "value": "x"},
        {"op": "add", "path": "/metadata/finalizers/7", "value": "x"},
        {"op": "copy", "from": "/data/b", "path": "/data/c"},
        {"op": "copy", "path": "/data/c"},
        {"op": "zap", "path": "/data/a"},
        {"op": "add"},
        {"path": "/data/a"},
        {"op": "add", "path": "data/a", "value": 1},
        {"op": "replace", "path": "", "value": []},
        {"op": "remove", "path": ""},
        None,
    ],
)
def test_what_cannot_be_done_is_rejected_without_a_reason(operation: Any) -> None:
    error = refusal([operation])
    assert (error.code, error.reason, str(error)) == (422, "Invalid", REJECTED)
    assert error.status["details"] == {}


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (b"{}", "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (b"[1]", "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (
            b'[{"op":1}]',
            "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
        (b"[", "invalid JSON: unexpected end of data: line 1 column 2 (char 1)"),
        (
            b"",
            "invalid JSON: Input is a zero-length, empty document: line 1 column 1 (char 0)",
        ),
    ],
)
def test_what_is_no_json_patch_is_a_bad_request(patch: bytes, said: str) -> None:
    error = refusal(patch)
    assert (error.code, str(error)) == (400, f"error decoding patch: {said}")


def test_ten_thousand_operations_are_the_limit() -> None:
    test = {"op": "test", "path": "/data/a", "value": "1"}
    apply_json_patch(OBJ, [test] * 10_000)
    error = refusal([test] * 10_001)
    assert (error.code, error.reason) == (413, "RequestEntityTooLarge")
    assert str(error).endswith("maximum operations in a JSON patch is 10000, got 10001")


def test_copies_of_copies_do_not_fill_the_memory() -> None:
    grow = [{"op": "copy", "from": "/data", "path": f"/data/{i}"} for i in range(40)]
    assert refusal(grow).code == 422


pointers = st.sampled_from(
    ["", "/", "/data", "/data/a", "/data/a/b", "/metadata/finalizers/0", "/metadata/finalizers/-"]
)
operations: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": pointers},
    optional={"from": pointers, "value": st.sampled_from([None, "1", {"a": []}, ["b"]])},
)


@given(st.lists(operations, max_size=4))
def test_neither_object_nor_patch_is_ever_changed(patch: list[Any]) -> None:
    before = orjson.dumps([OBJ, patch])
    with contextlib.suppress(ApiError):
        apply_json_patch(OBJ, patch).clear()
    assert orjson.dumps([OBJ, patch]) == before
