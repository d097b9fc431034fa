"""However many fields are spoilt at once, rules answer, and in words."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.localcluster.apiserver.validation import rules_subject
from tests.localcluster.apiserver.validation.single_changes import Obj, changed, changes

FOLDER = Path(__file__).parent
OBJECTS: dict[str, Obj] = json.loads((FOLDER / "full_objects.json").read_bytes())
STATUSES: dict[str, Obj] = json.loads((FOLDER / "full_statuses.json").read_bytes())


@st.composite
def spoilt(draw: st.DrawFn, base: Obj) -> Obj:
    for _ in range(draw(st.integers(1, 4))):
        base = changed(base, draw(st.sampled_from(list(changes(base)))))
    return base


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_faults_in_an_object_are_told(data: st.DataObject) -> None:
    obj = data.draw(spoilt(OBJECTS[data.draw(st.sampled_from(sorted(OBJECTS)))]))
    obj.setdefault("metadata", {})
    assert all(message for _, _, message in rules_subject.created(obj))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_faults_in_an_update_are_told(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OBJECTS)))
    old = {**OBJECTS[name], "status": STATUSES.get(name, {})}
    old["metadata"] = {**old["metadata"], "uid": rules_subject.UID, "resourceVersion": "1"}
    new = data.draw(spoilt(old))
    assert all(message for _, _, message in rules_subject.updated(new, old))
    assert all(message for _, _, message in rules_subject.status_updated(new, old))
