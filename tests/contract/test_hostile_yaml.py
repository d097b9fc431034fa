"""Texts that people paste into editors and forms to break them: each gets words and a line."""

from itertools import pairwise

import pytest

from gpupool.contract.yaml_document import Document, read_documents

_LETTERS = "abcdefghij"
_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(_LETTERS)
)
_REFUSED = {
    "a tab": "a:\n\tb: 1\n",
    "aliases of aliases": _BOMB,
    "an alias of itself": "a: &a [*a]\n",
    "brackets": "[" * 100_000,
    "braces": "{a: " * 5_000,
    "lists in lists": "- " * 60_000,
    "a control character": "a: \x00\n",
    "quotes": '"' * 100_001,
    "half a character": 'a: "\\ud800"\n',
    "too many values": "".join(f"k{number}: v\n" for number in range(110_000)),
    "an anchor that is not there": "a: *b\n",
    "the same key twice": "a: 1\na: 2\n",
}


@pytest.mark.parametrize("name", _REFUSED)
def test_a_hostile_text_is_refused_with_words_and_a_place(name: str) -> None:
    found = read_documents(_REFUSED[name])
    assert isinstance(found, tuple)
    assert all(each.text for each in found)
    assert len(found) <= 20


def test_a_tag_of_python_calls_nothing() -> None:
    (found,) = read_documents("!!python/object/apply:os.system ['id']\n")
    assert isinstance(found, Document)
    assert found.data == ["id"]
