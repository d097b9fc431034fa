"""A pod's annotations -> the cards that it accepts, or what is wrong with them."""

from collections.abc import Mapping
from typing import NamedTuple

from gpupool.contract.names import (
    ANNOTATION_AVOIDED_MODELS,
    ANNOTATION_AVOIDED_UUIDS,
    ANNOTATION_CARD_MODELS,
    ANNOTATION_CARD_UUIDS,
)
from gpupool.core.card_choice import CardChoice

# Enough for every card of eight large machines. Each name costs time in every decision.
MOST_NAMES = 64
_LONGEST_NAME = 128
_KEYS = (  # in the order of CardChoice's fields
    ANNOTATION_CARD_MODELS,
    ANNOTATION_AVOIDED_MODELS,
    ANNOTATION_CARD_UUIDS,
    ANNOTATION_AVOIDED_UUIDS,
)


class ReadChoice(NamedTuple):
    choice: CardChoice | None = None  # None: any card
    wrong: tuple[str, ...] = ()  # as admission says it: field, wanted, found


def card_choice(annotations: Mapping[str, str]) -> ReadChoice:
    # Nearly every pod has none of them.
    if not any(key in annotations for key in _KEYS):
        return ReadChoice()
    lists = [_names(annotations.get(key)) for key in _KEYS]
    wrong = tuple(
        f"metadata.annotations[{key}]: wanted 1 to {MOST_NAMES} names separated by commas, each of "
        f'at most {_LONGEST_NAME} characters, found "{annotations[key][:60]}"'
        for key, names in zip(_KEYS, lists, strict=True)
        if names is None
    )
    if wrong:
        return ReadChoice(wrong=wrong)
    return ReadChoice(CardChoice(*(names or () for names in lists)))


def _names(text: str | None) -> tuple[str, ...] | None:
    """None: not a list that we take. Without the annotation: empty."""
    if text is None:
        return ()
    names = tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))
    good = 1 <= len(names) <= MOST_NAMES and max(map(len, names)) <= _LONGEST_NAME
    return names if good else None
