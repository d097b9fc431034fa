"""The order of what strict decoding says; whole bodies are among the recorded requests."""

from localkube.apiserver.schema.strictness import AsWritten, Key, said


def test_elements_of_a_list_come_by_number_and_fields_by_name() -> None:
    unknown = [f'unknown field "{path}"' for path in ("z", "a[10].b", "a[9].c", "a[9].b", "b")]
    found = said(unknown, AsWritten(in_order=False), custom=False)
    assert found == [
        f'unknown field "{path}"' for path in ("a[9].b", "a[9].c", "a[10].b", "b", "z")
    ]


def test_what_is_within_an_unknown_field_is_not_named() -> None:
    keys = [Key("x", False), Key("x.y", False), Key("x.y", True), Key("x", True), Key("xy", False)]
    written = AsWritten(["said otherwise"], [*keys, Key("xy", True)])
    assert said(['unknown field "x"'], written, custom=False) == [
        'unknown field "x"',
        'duplicate field "xy"',
    ]


def test_a_key_that_comes_three_times_is_named_once() -> None:
    keys = [Key("a", False), Key("a", True), Key("a", True)]
    assert said([], AsWritten(["x"], keys), custom=False) == ['duplicate field "a"']


def test_a_key_that_looks_like_an_index_of_any_length_is_sorted() -> None:
    paths = ("a[2]", f"a[{'9' * 5000}]", "b")
    unknown = [f'unknown field "{path}"' for path in reversed(paths)]
    found = said(unknown, AsWritten(), custom=True)
    assert found == [f'unknown field "{path}"' for path in paths]


class Text(str):
    compared = 0

    def __eq__(self, other: object) -> bool:
        Text.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_an_unknown_field_is_not_looked_for_among_all_others() -> None:
    paths = [f"{place}.f{i}" for place in ("x", "metadata") for i in range(500)]
    found = said([Text(f'unknown field "{path}"') for path in paths], AsWritten(), custom=True)
    assert found[0] == 'unknown field "metadata.f0"'
    assert Text.compared < 10_000
