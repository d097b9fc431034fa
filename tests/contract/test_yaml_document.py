"""YAML documents: positions of values, and limits against hostile files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.contract.yaml_document import (
    Document,
    Mark,
    Problem,
    dotted,
    read_document,
    read_documents,
)


def problem(text: str) -> Problem:
    found = read_document(text)
    assert not isinstance(found, Document)
    return found[0]


def test_every_value_and_key_has_its_position() -> None:
    document = read_document("a:\n  - b: 1\n    c: [x, y]\n")
    assert isinstance(document, Document)
    assert document.data == {"a": [{"b": 1, "c": ["x", "y"]}]}
    assert document.values["a", 0, "c", 1] == Mark(3, 12)
    assert document.keys["a", 0, "c"] == Mark(3, 5)


def test_a_problem_about_something_missing_points_at_what_is_around_it() -> None:
    document = read_document("a:\n  b: {}\n")
    assert isinstance(document, Document)
    assert document.problem("x", "a", "b", "c", "d").mark == Mark(2, 6)


def test_values_are_plain() -> None:
    document = read_document("[1, 1.5, true, null, text, 2020-01-01, 0x10]")
    assert isinstance(document, Document)
    assert document.data == [1, 1.5, True, None, "text", "2020-01-01", 16]


def test_an_empty_file_is_an_empty_map() -> None:
    document = read_document("# nothing\n")
    assert isinstance(document, Document)
    assert document.data == {}


@pytest.mark.parametrize(
    ("text", "words", "mark"),
    [
        ("a: [", "not valid YAML: while parsing a flow node", Mark(2, 1)),
        ("a: 1\na: 2\n", "given twice, first in line 1", Mark(2, 1)),
        ("? [a]\n: b\n", "wanted text as the name of a field, found a list or a map", Mark(1, 3)),
        ("a: &x [*x]", "nested deeper than 32 levels", Mark(1, 4)),
        ("[" * 1_000_000, "nested deeper than 32 levels", Mark(1, 33)),
        ("a: *x", "not valid YAML: an alias (*) without the anchor (&) that it names", Mark(1, 4)),
        ("a: !!python/object:os.system x\nb: [", "not valid YAML", Mark(3, 1)),
    ],
)
def test_a_bad_document_says_what_and_where(text: str, words: str, mark: Mark) -> None:
    found = problem(text)
    assert found.text.startswith(words)
    assert found.mark == mark


def test_aliases_that_mean_billions_of_values_are_refused() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert problem("\n".join(lines)).text.startswith("wanted at most 100000 values")
    merges = ["a0: &a0 {b: 1}"]
    merges += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 10)]
    assert problem("\n".join(merges)).text.startswith("wanted at most 100000 values")


@pytest.mark.parametrize("text", ["&a {<<: *a}", "a: &a\n  b: 1\n  <<: [*a, *a]", "a: &a [*a]"])
def test_a_value_that_contains_itself_is_refused(text: str) -> None:
    assert problem(text).text == "nested deeper than 32 levels"


@pytest.mark.parametrize("value", ['!!int ""', '!!int "-"', '!!float ""', "!!bool maybe"])
def test_a_value_that_is_not_what_its_tag_says_stays_text(value: str) -> None:
    document = read_document(f"a: {value}")
    assert isinstance(document, Document)
    assert document.data == {"a": value.partition(" ")[2].strip('"')}


def test_a_large_file_is_refused() -> None:
    assert problem("#" * (1 << 20) + "\n").text == "wanted at most 1 MiB, found a larger file"


def test_control_characters_are_refused() -> None:
    assert problem("a: \x00").text.startswith("not valid YAML")


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 5000, "9" * 20, f"-{2**63 + 1}"])
def test_a_number_that_no_json_can_carry_stays_text(number: str) -> None:
    document = read_document(f"a: {number}")
    assert isinstance(document, Document)
    assert document.data == {"a": number}


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 0])
def test_the_largest_numbers_are_numbers(number: int) -> None:
    document = read_document(f"a: {number}")
    assert isinstance(document, Document)
    assert document.data == {"a": number}


@given(st.text(alphabet="a:[]{}&*-?!|>\"'#% \n\t1", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert isinstance(read_document(text), Document | tuple)


def test_fields_of_a_merge_come_after_the_own_ones() -> None:
    document = read_document("x: &x {a: 1, b: 2}\ny: &y {a: 0, c: 3}\nz: {<<: [*x, *y], b: 4}")
    assert isinstance(document, Document)
    assert document.data["z"] == {"a": 1, "b": 4, "c": 3}
    assert problem("a: {<<: text}").text == "wanted a map after <<, found none"


def test_all_documents_of_a_file_are_read_but_empty_ones() -> None:
    documents = read_documents("---\n# none\n---\na: 1\n---\n---\nb: 2\n")
    assert [each.data for each in documents if isinstance(each, Document)] == [{"a": 1}, {"b": 2}]
    assert problem("a: 1\n---\nb: 2\n").mark == Mark(3, 1)


def test_paths_are_written_as_people_write_them() -> None:
    assert dotted(("pools", 2, "labels", "a.b/c")) == 'pools[2].labels["a.b/c"]'


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\u2029"])
def test_lines_are_counted_as_editors_do(odd: str) -> None:
    """YAML ends a line there, and an editor does not."""
    text = f'# pasted{odd}# text\na: "x{odd}y"\nb: 1\n'
    found = read_document(text)
    assert isinstance(found, Document)
    assert found.values["b",] == Mark(3, 4)
    assert found.keys["b",] == Mark(3, 1)
    twice = problem(f"{text}b: 2\n")
    assert twice.mark == Mark(4, 1)
    assert "first in line 3" in twice.text
    broken = problem(f"# {odd}# {odd}\na: [\n")
    assert broken.mark is not None
    assert broken.mark.line == 3
    deep = problem(f"#{odd}#{odd}\n{'[' * 40}")
    assert deep.mark is not None
    assert deep.mark.line == 2


def test_a_position_behind_an_odd_end_is_that_of_the_editors_line() -> None:
    found = read_document("a: x\u2028b: y\n")
    assert isinstance(found, Document)
    assert found.keys["b",] == Mark(1, 6)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"),
        ("1:20:30.5", "1:20:30.5"),
        ("00:11:22:33:44:55", "00:11:22:33:44:55"),
        ("0o644", 0o644),
        ("0644", 0o644),
        ("-0o17", -0o17),
        ("'0o644'", "0o644"),
        ("0o8", "0o8"),
        ("0o" + "7" * 30, "0o" + "7" * 30),
        ("0x1F", 31),
    ],
)
def test_numbers_are_those_of_kubectl(text: str, value: object) -> None:
    found = read_document(f"a: {text}\n")
    assert isinstance(found, Document)
    assert found.data == {"a": value}
    assert type(found.data["a"]) is type(value)
