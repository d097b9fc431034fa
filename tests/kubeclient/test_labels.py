import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.labels import are_values, as_label_value, value_complaints


@given(st.text(max_size=80))
def test_any_text_becomes_a_valid_label_value(text: str) -> None:
    assert value_complaints(as_label_value(text)) == []


@given(st.lists(st.text(alphabet="a-._Z9é\n", max_size=66) | st.just("x" * 63), max_size=3))
def test_values_are_judged_together_as_each_is_alone(values: list[str]) -> None:
    assert are_values(values) == (not any(map(value_complaints, values)))


@given(st.text(max_size=80))
def test_a_label_value_stays_as_it_is(text: str) -> None:
    once = as_label_value(text)
    assert as_label_value(once) == once


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tesla M40", "Tesla-M40"),
        ("Tesla P100-PCIE-16GB", "Tesla-P100-PCIE-16GB"),
        ("NVIDIA TITAN X (Pascal)", "NVIDIA-TITAN-X-Pascal"),
        ("Quadro RTX 6000/8000", "Quadro-RTX-6000-8000"),
        ("Tesla T4 ", "Tesla-T4"),
        ("x" * 62 + " y", "x" * 62),
        ("///", ""),
    ],
)
def test_card_names_keep_what_can_be_kept(name: str, expected: str) -> None:
    assert as_label_value(name) == expected
