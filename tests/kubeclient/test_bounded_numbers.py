import pytest

from kubeclient.bounded_numbers import bounded_number


@pytest.mark.parametrize("text", ["0", "7", "007", "9" * 18])
def test_digits_are_a_number(text: str) -> None:
    assert bounded_number(text) == int(text)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1 ", "1_0", "1.0", "٣", "²", "0x1", "9" * 19, "0" * 5000]
)
def test_anything_else_is_none(text: str) -> None:
    assert bounded_number(text) is None


def test_a_number_has_no_more_digits_than_are_allowed() -> None:
    assert bounded_number("65535", 5) == 65535
    assert bounded_number("065535", 5) is None
