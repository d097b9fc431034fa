"""A condition is judged by the parts that it names, as it would be by the whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.apiserver.admission.webhook_conditions import holds
from localkube.apiserver.admission.webhook_config import Condition
from localkube.apiserver.cel_library import cel

EXPRESSIONS = [
    "has(object.a)",
    "has(object.a) && has(object.a.b)",
    "has(object.a) && object.a.exists(k, k == 'b')",
    "object . a == {'b': 1}",
    "object == {'a': {'b': 1}} || has(object.a)",
    "oldObject == null || has(oldObject.a)",
    "size(object) == 1 && object['a'] == 1",
    "request.user in ['object.a', 'me']",
    "has(object.a) && object.a == {} || object.a.b == 1",
    "true",
]
values = st.recursive(
    st.sampled_from([1, "x", None]),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2)


@given(st.sampled_from(EXPRESSIONS), objects, objects | st.none())
def test_parts_are_judged_as_the_whole_would_be(expression: str, obj: Obj, old: Obj | None) -> None:
    variables: Obj = {"object": obj, "oldObject": old, "request": {"user": "me", "more": [1]}}
    assert judged(expression, variables) == judged_whole(expression, variables)


def judged(expression: str, variables: Obj) -> object:
    try:
        return holds([Condition("c", expression)], variables)
    except Exception:  # noqa: BLE001 - that it fails is all that counts; words differ by what is seen
        return "failed"


def judged_whole(expression: str, variables: Obj) -> object:
    try:
        return cel().compile(expression).execute(variables)
    except Exception:  # noqa: BLE001 - as above
        return "failed"


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_the_same_question_about_another_object_gets_another_answer(names: list[str]) -> None:
    condition = [Condition("c", "object.kind == 'a'")]
    for name in names:
        assert holds(condition, {"object": {"kind": name}}) is (name == "a")
