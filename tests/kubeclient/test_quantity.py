"""Quantities are exact, and have the canonical text of Kubernetes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubeclient import quantity
from kubeclient.quantity import Format, ParseError, canonical, parse

STORED = [
    ("0", "0"),
    ("00", "0"),
    ("0m", "0"),
    ("0Mi", "0"),
    (".", "0"),
    ("1", "1"),
    ("+1", "+1"),
    ("-1", "-1"),
    (" 1 ", "1"),
    ("1.", "1."),
    ("1.0", "1"),
    ("1.5", "1500m"),
    ("1.500", "1.500"),
    ("0.5", "500m"),
    (".5", "500m"),
    ("100m", "100m"),
    ("0100m", "0100m"),
    ("1000m", "1"),
    ("1500m", "1500m"),
    ("1000", "1k"),
    ("1000k", "1M"),
    ("10000", "10k"),
    ("1234567", "1234567"),
    ("1024Mi", "1Gi"),
    ("1023Mi", "1023Mi"),
    ("1536Mi", "1536Mi"),
    ("1.5Gi", "1536Mi"),
    ("0.5Gi", "512Mi"),
    ("0.5Ki", "512"),
    ("0.0001Ki", "102400u"),
    ("1Ki", "1Ki"),
    ("16Ei", "9223372036854775807"),
    ("1e3", "1e3"),
    ("1E3", "1E3"),
    ("1E", "1E"),
    ("12e2", "1200"),
    ("1e4", "10e3"),
    ("1e-3", "1e-3"),
    ("0.1n", "1n"),
    ("1.1n", "2n"),
    ("-0.1n", "-1n"),
    ("5u", "5u"),
    ("1000E", "1000E"),
    (1, "1"),
    (0.5, "500m"),
    (2.0, "2"),
    (1000, "1k"),
]


@pytest.mark.parametrize(("given", "stored"), STORED)
def test_a_quantity_is_stored_in_its_canonical_form(given: str | float, stored: str) -> None:
    assert canonical(given) == stored


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", quantity.FORMAT_WRONG),
        ("abc", quantity.FORMAT_WRONG),
        ("1 Gi", quantity.FORMAT_WRONG),
        ("1.2.3", quantity.FORMAT_WRONG),
        ("--1", quantity.SUFFIX_WRONG),
        ("1e3x", quantity.FORMAT_WRONG),
        ("１", quantity.FORMAT_WRONG),
        ("1K", quantity.SUFFIX_WRONG),
        ("1GiB", quantity.FORMAT_WRONG),
        ("1mi", quantity.SUFFIX_WRONG),
        ("1e", quantity.SUFFIX_WRONG),
        ("1e99999999999", quantity.SUFFIX_WRONG),
        ("9" * 5000, quantity.NUMBER_WRONG),
    ],
)
def test_a_bad_quantity_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(text)
    assert str(refused.value) == why


def test_amounts_compare_across_formats() -> None:
    assert parse("1") == parse("1000m") < parse("1001m")
    assert parse("1Gi") > parse("1G")
    assert parse("-1") < parse("0")


@pytest.mark.parametrize(
    ("text", "units", "millis"),
    [("1", 1, 1000), ("1m", 1, 1), ("100u", 1, 1), ("1001m", 2, 1001), ("-1500m", -2, -1500)],
)
def test_values_round_away_from_zero(text: str, units: int, millis: int) -> None:
    assert quantity.value(parse(text)) == units
    assert quantity.milli_value(parse(text)) == millis


@pytest.mark.parametrize(
    ("text", "rounded"), [("1500u", "2m"), ("-1u", "-1m"), ("1m", "1m"), ("+1", "+1")]
)
def test_resource_lists_hold_thousandths(text: str, rounded: str) -> None:
    assert quantity.to_milli(parse(text)).text == rounded


def test_a_sum_keeps_the_format_of_its_first_part_unless_that_is_zero() -> None:
    assert quantity.add(parse("1Gi"), parse("1024Mi")).text == "2Gi"
    assert quantity.add(parse("0"), parse("512Mi")).text == "512Mi"
    assert quantity.add(parse("500m"), parse("0.5")).text == "1"
    assert quantity.subtract(parse("1"), parse("100m")).text == "900m"
    assert quantity.subtract(parse("0"), parse("1Gi")).text == "-1Gi"


texts = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 2000),
    st.sampled_from(["", ".", ".0", ".5", ".500", ".123456789", ".0000000001"]),
    st.sampled_from(["", "n", "u", "m", "k", "M", "E", "Ki", "Gi", "Ei", "e3", "E-2", "e+1"]),
)
amounts = st.integers(-(10**14), 10**14) | st.integers(-20, 20).map(lambda n: n * 1024**3 * 10**9)


@given(texts)
@example("1.Ki")
def test_the_stored_text_means_the_same_and_stays(text: str) -> None:
    stored = parse(text)
    again = parse(stored.text)
    assert again.nanos == stored.nanos
    assert again.text == stored.text


@given(amounts, st.sampled_from(Format))
def test_formatting_loses_nothing(nanos: int, format: Format) -> None:
    assert parse(quantity.of_nanos(nanos, format).text).nanos == nanos


@given(amounts, amounts, st.sampled_from(Format), st.sampled_from(Format))
def test_order_is_the_order_of_the_amounts(a: int, b: int, f: Format, g: Format) -> None:
    left, right = parse(quantity.of_nanos(a, f).text), parse(quantity.of_nanos(b, g).text)
    assert (left < right) == (a < b)
    assert (left == right) == (a == b)


@given(amounts, amounts)
def test_subtraction_undoes_addition(a: int, b: int) -> None:
    left, right = quantity.of_nanos(a), quantity.of_nanos(b)
    assert quantity.subtract(quantity.add(left, right), right) == left
