import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.contract.card_orders import BadOrders, orders_of, orders_text


@given(st.dictionaries(st.sampled_from(("GPU-a", "GPU-b")), st.text(max_size=3)))
def test_orders_come_back_as_they_were_written(orders: dict[str, str]) -> None:
    assert orders_of(orders_text(orders)) == orders


def test_an_empty_annotation_means_no_orders() -> None:
    assert orders_of("") == {}


@pytest.mark.parametrize("text", ["[]", "{", '{"GPU-a": 1}', "x" * 20_000])
def test_bad_orders_are_refused_with_a_reason(text: str) -> None:
    with pytest.raises(BadOrders, match=r"wanted|bytes"):
        orders_of(text)
