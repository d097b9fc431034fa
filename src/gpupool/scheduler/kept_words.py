"""The sentence in which a waiting pod says where room is kept for it, and how to read it again.

Nothing else of kept room is in the API. So programs that only read the cluster learn it from here.
"""

import re
from typing import NamedTuple

from gpupool.engine.decide import Placement

RESERVED = "Reserved for it"  # how the sentence begins
# Said without the name of a node, which would differ from try to try and be written each time.
LEFT = (
    "Room that is free for it is left to larger pods: more GPUs are asked for than there are, and "
    "few nodes have as many untouched cards as those pods need. It gets the room if no larger pod "
    "comes within half an hour, or when it has waited for long."
)
_INDEXES = r"[0-9]{1,4}(?:, [0-9]{1,4})*"
_SENTENCE = re.compile(
    rf"{RESERVED} since (?P<since>\S+): room on (?P<node>\S+), cards? (?P<cards>{_INDEXES}), "
    r"expected in (?P<amount>[0-9]{1,9}) (?P<unit>s|min|h) from then\."
)
_SECONDS = {"s": 1, "min": 60, "h": 3600}


class Told(NamedTuple):
    node: str
    cards: frozenset[int]  # their indexes
    since: str
    within_s: float
    sentence: str


def words_of(placement: Placement, since: str, within_s: float) -> str:
    containers = placement.allocation.containers
    indexes = sorted({share.index for gpus in containers for share in gpus.shares})
    cards = f"card{'s' if len(indexes) > 1 else ''} {', '.join(map(str, indexes))}"
    room = f"room on {placement.node}, {cards}"
    return f"{RESERVED} since {since}: {room}, expected in {_shown(within_s)} from then."


def told(words: str) -> Told | None:
    """What such a sentence says. None: there is none in these words."""
    found = _SENTENCE.search(words)
    if found is None:
        return None
    cards = frozenset(map(int, found["cards"].split(", ")))
    within_s = float(int(found["amount"]) * _SECONDS[found["unit"]])
    return Told(found["node"], cards, found["since"], within_s, found[0])


def _shown(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
