"""CardChoice: the cards that a pod accepts, by model and by uuid.

A model is named by words of its name, in any case: `V100` and `tesla v100` name the card
`Tesla V100-SXM2-16GB`, and `A10` does not name an A100. Spaces, hyphens and underscores all
separate words, because labels of nodes have hyphens where the driver has spaces. A `*` stands for
any characters.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from gpupool.core.gpu import Card

_SEPARATORS = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True)
class CardChoice:
    """An empty list of wanted models or uuids accepts all of them."""

    models: tuple[str, ...] = ()
    avoided_models: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    avoided_uuids: tuple[str, ...] = ()

    def takes_model(self, model: str) -> bool:
        wanted = not self.models or _is_named(model, self.models)
        return wanted and not _is_named(model, self.avoided_models)

    def takes_uuid(self, uuid: str) -> bool:
        return (not self.uuids or uuid in self.uuids) and uuid not in self.avoided_uuids

    def takes(self, card: Card) -> bool:
        return self.takes_uuid(card.uuid) and self.takes_model(card.model)


def _is_named(model: str, names: tuple[str, ...]) -> bool:
    # A separator on either side: words begin and end at one.
    words = f"-{_plain(model)}-"
    return any(_fits(words, _parts(name)) for name in names)


def _fits(words: str, parts: tuple[str, ...]) -> bool:
    """Whether the parts follow one another. No pattern of `re` is made of them: pods choose the
    names, and twenty stars would take it for ever."""
    place = 0
    for part in parts:
        place = words.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


@lru_cache(maxsize=1024)
def _parts(name: str) -> tuple[str, ...]:
    """What stands between the stars."""
    return tuple(f"-{_plain(name)}-".split("*"))


def _plain(name: str) -> str:
    return _SEPARATORS.sub("-", name.strip().lower())
