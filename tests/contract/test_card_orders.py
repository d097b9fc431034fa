import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.contract.card_orders import BadOrders, orders_of, orders_text


@given(st.dictionaries(st.sampled_from(("GPU-a", "GPU-b")), st.text(max_size=3)))
def test_orders_come_back_as_they_were_written(orders: dict[str, str]) -> None:
    assert orders_of(orders_text(orders)) == orders


def test_nothing_said_is_no_orders() -> None:
    assert orders_of("") == {}


@pytest.mark.parametrize("text", ["[]", "{", '{"GPU-a": 1}', "x" * 20_000])
def test_anything_else_is_refused_in_words(text: str) -> None:
    with pytest.raises(BadOrders, match=r"wanted|bytes"):
        orders_of(text)
