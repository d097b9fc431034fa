"""Objects as YAML: whatever they hold comes back, quoted as Kubernetes quotes."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.verbs.yaml_answer import portions, yaml_bytes, yaml_items, yaml_list

TEXTS = st.text(st.sampled_from("ab1:-#'\"\n {}[]~yn.é"), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("1", '"1"'),
        ("true", '"true"'),
        ("y", '"y"'),
        ("1e3", '"1e3"'),
        ("0o17", '"0o17"'),
        ("0X1F", '"0X1F"'),
        ("1_0e3", '"1_0e3"'),
        ("2026-01-01T00:00:00Z", '"2026-01-01T00:00:00Z"'),
        ("two\nlines", "|-\n  two\n  lines"),
        ("", '""'),
    ],
)
def test_text_that_could_be_something_else_is_quoted(text: str, shown: str) -> None:
    assert yaml_bytes({"a": text}).decode() == f"a: {shown}\n"


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert yaml.safe_load(yaml_bytes(value)) == value


def test_a_long_list_is_made_in_portions_that_others_can_wait_for() -> None:
    """A list of 20,000 objects takes several seconds: it was one job, and others waited for it."""
    bodies = [b'{"a": "%s"}' % (b"x" * number) for number in range(2000)]
    made = list(portions(bodies))
    assert [body for portion in made for body in portion] == bodies
    assert len(made) > 20
    assert max(sum(map(len, portion)) for portion in made) < 70_000
    items = [item for portion in made for item in yaml_items(portion)]
    text = b"".join(yaml_list({"apiVersion": "v1"}, {"kind": "List"}, items[:3]))
    assert yaml.safe_load(text)["items"] == [{"a": ""}, {"a": "x"}, {"a": "xx"}]
    assert list(portions([])) == []
