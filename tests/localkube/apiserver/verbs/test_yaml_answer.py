"""Objects as YAML: whatever they hold comes back, quoted as Kubernetes quotes."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.verbs.yaml_answer import yaml_bytes

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
