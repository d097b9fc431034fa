"""YAML that we write: whoever reads it, a text stays a text."""

import itertools
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.yaml_writing import dump_yaml, needs_quotes

# What numbers, dates and truth values are made of.
LETTERS = "0189-+._:eExXoObBtT aAfFyYnN~=<,\n\u2028é"
TEXTS = st.text(st.sampled_from(LETTERS), max_size=8) | st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
# The types of YAML 1.2 (its core schema) and of YAML 1.1, as their documents write them.
NULLS = r"null|Null|NULL|~|"
SCHEMA_12 = re.compile(
    rf"{NULLS}|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN"
)
SCHEMA_11 = re.compile(
    rf"{NULLS}|y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
    r"|[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+"
    r"|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*"
    r"|[-+]?([0-9][0-9_]*)?\.[0-9_]*([eE][-+][0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}|<<|="
)
# What one reader or another takes for something else, beyond those documents.
OTHERS = (
    "0X1F",
    "0B1",
    "0O17",
    "1_0e3",
    "+_1",
    "1_",
    "2026-1-2",
    "1,000",
    "0:30",
    "yEs",
    "._",
    ":a",
)


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    for allow_unicode in (False, True):
        assert yaml.safe_load(dump_yaml(value, allow_unicode=allow_unicode)) == value


@given(TEXTS)
def test_a_text_that_a_version_of_yaml_takes_for_something_else_has_quotes(text: str) -> None:
    if SCHEMA_12.fullmatch(text) or SCHEMA_11.fullmatch(text):
        assert dump_yaml({"a": text})[len("a: ")] in "'\""


@pytest.mark.parametrize("text", OTHERS)
def test_what_some_readers_take_for_something_else_has_quotes(text: str) -> None:
    assert dump_yaml({text: [text]}) == f"'{text}':\n- '{text}'\n"


@pytest.mark.parametrize("text", ["0o8", "e3", "1.2.3", "x1e3", "10.0.0.1", "v1", "none", "5:a"])
def test_other_texts_have_none(text: str) -> None:
    assert not needs_quotes(text)
    assert dump_yaml({text: text}) == f"{text}: {text}\n"


def test_what_is_there_twice_is_written_twice() -> None:
    labels = {"a": "b"}
    assert dump_yaml({"x": labels, "y": labels}) == "x:\n  a: b\n'y':\n  a: b\n"


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
def test_kubectl_reads_texts_as_texts() -> None:
    short = map("".join, itertools.product("019-+._:exXobB~yn", repeat=3))
    texts = [*short, *OTHERS, ".inf", "-.Inf", ".NaN", "0x_1F", "1.5e-3", "true", "NO", "null"]
    data = {f"k{number}": text for number, text in enumerate(texts)}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
    read = subprocess.run(
        ["kubectl", "annotate", "--local", "-f", "-", "a=b", "-o", "json"],
        input=dump_yaml(config),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(read.stdout)["data"] == data
