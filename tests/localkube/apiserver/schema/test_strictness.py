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
