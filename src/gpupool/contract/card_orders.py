"""Orders of people about single cards, in annotations of the node: {"GPU-uuid": "reason"}."""

from collections.abc import Mapping

import msgspec

from gpupool.contract.documents import document_of

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
    try:
        return document_of(_DECODER, text, BadOrders, _MAX_BYTES)
    except BadOrders as error:
        raise BadOrders(f'wanted {{"uuid of a card": "reason"}}, found: {error}') from error
