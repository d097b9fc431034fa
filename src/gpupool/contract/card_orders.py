"""Orders of people about single cards, in annotations of the node: {"GPU-uuid": "reason"}."""

from collections.abc import Mapping

import msgspec

_MAX_BYTES = 16 * 1024
_DECODER = msgspec.json.Decoder(dict[str, str])


class BadOrders(ValueError):
    """The annotation cannot be parsed."""


def orders_text(orders: Mapping[str, str]) -> str:
    return msgspec.json.encode(dict(orders), order="sorted").decode()


def orders_of(text: str) -> dict[str, str]:
    """Raises BadOrders."""
    if not text:
        return {}
    if len(text) > _MAX_BYTES:
        raise BadOrders(f"{len(text)} bytes; at most {_MAX_BYTES} are read")
    try:
        return _DECODER.decode(text)
    except msgspec.MsgspecError as error:
        raise BadOrders(f'wanted {{"uuid of a card": "reason"}}, found: {error}') from error
