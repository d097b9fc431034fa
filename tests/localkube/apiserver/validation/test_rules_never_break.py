"""However many fields are spoilt at once, rules answer, and in words."""

import json
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from kubeclient.quantity import ParseError
from tests.localkube.apiserver.validation import rules_subject
from tests.localkube.apiserver.validation.rules_subject import Causes
from tests.localkube.apiserver.validation.single_changes import Change, Obj, changed, changes

FOLDER = Path(__file__).parent
OBJECTS: dict[str, Obj] = json.loads((FOLDER / "full_objects.json").read_bytes())
STATUSES: dict[str, Obj] = json.loads((FOLDER / "full_statuses.json").read_bytes())


def is_possible(change: Change) -> bool:
    """Names come from the URL, if not from the body."""
    return change.path != ("metadata", "name")


@st.composite
def spoilt(draw: st.DrawFn, base: Obj) -> Obj:
    for _ in range(draw(st.integers(1, 4))):
        possible = list(filter(is_possible, changes(base)))
        base = changed(base, draw(st.sampled_from(possible))) if possible else base
    return base


def assert_told(rule: Callable[..., Causes], *objects: Obj) -> None:
    try:
        causes = rule(*objects)
    except ParseError:
        reject()  # an amount that is none is found before, with the wrong types
    assert all(message for _, _, message in causes)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_faults_in_an_object_are_told(data: st.DataObject) -> None:
    obj = data.draw(spoilt(OBJECTS[data.draw(st.sampled_from(sorted(OBJECTS)))]))
    assert_told(rules_subject.created, obj)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_faults_in_an_update_are_told(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OBJECTS)))
    old = {**OBJECTS[name], "status": STATUSES.get(name, {})}
    old["metadata"] = {**old["metadata"], "uid": rules_subject.UID, "resourceVersion": "1"}
    new = data.draw(spoilt(old))
    assert_told(rules_subject.updated, new, old)
    assert_told(rules_subject.status_updated, new, old)
