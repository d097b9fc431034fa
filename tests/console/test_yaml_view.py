"""Objects as YAML for people: what they copy, kubectl and the console read as it was."""

import pytest

from gpupool.console.yaml_view import yaml_text
from gpupool.contract.yaml_document import Document, read_document
from localkube.apiserver.decode.yaml_text import parse

# Commits and times as labels, and what else looks like a number to one reader or another.
TEXTS = (
    "1e3",
    "12E45",
    "0o17",
    "0X1F",
    "1_0e3",
    "0B1",
    "-0o7",
    "12:30",
    "0644",
    "1.",
    ".5",
    "1_000",
    "y",
    "no",
    "~",
    "0x1F",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_looks_like_a_number_stays_a_text(text: str) -> None:
    value = {"a": text, "list": [text]}
    written = yaml_text(value)
    found = read_document(written)
    assert isinstance(found, Document)
    assert found.data == value
    assert parse(written.encode()).value == value


def test_other_texts_have_no_quotes() -> None:
    assert yaml_text({"a": "0o8", "b": "e3", "c": "1.2.3", "d": "x1e3"}) == (
        "a: 0o8\nb: e3\nc: 1.2.3\nd: x1e3\n"
    )
