"""Planned moves <-> an annotation of the node that they lead to. Versioned JSON.

A pod that moves is evicted, and its controller makes another one, whose name and uid nobody knows
before. So an entry names the controller, which is there already.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from gpupool.contract.documents import CardUuid, document_of

VERSION = 1
LONGEST_S = 3600.0  # an entry that lasts longer comes from a clock that is wrong
MOST_MOVES = 64  # to one node
_MOST_CARDS = 64
_MAX_BYTES = 64 * 1024

Uid = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class BadPlannedMoves(ValueError):
    """The annotation cannot be parsed, or has another version."""


class PlannedMove(msgspec.Struct, frozen=True):
    """One pod of this controller is to come to these cards of the node."""

    pod: Uid  # that leaves for it
    controller: Uid
    cards: Annotated[tuple[CardUuid, ...], msgspec.Meta(max_length=_MOST_CARDS)]
    until: Annotated[str, msgspec.Meta(max_length=64)]  # RFC 3339


class _Document(msgspec.Struct, frozen=True):
    version: int
    moves: Annotated[tuple[PlannedMove, ...], msgspec.Meta(max_length=MOST_MOVES)]


def planned_moves_text(moves: Iterable[PlannedMove]) -> str:
    """Empty if there are none."""
    listed = tuple(moves)
    return msgspec.json.encode(_Document(VERSION, listed)).decode() if listed else ""


def planned_moves_of(text: str) -> tuple[PlannedMove, ...]:
    """Raises BadPlannedMoves."""
    if not text:
        return ()
    document = document_of(_DECODER, text, BadPlannedMoves, _MAX_BYTES)
    if document.version != VERSION:
        raise BadPlannedMoves(f"version {document.version}; this program reads version {VERSION}")
    return document.moves


_DECODER = msgspec.json.Decoder(_Document)
