"""Claims: what victims leave is kept for the pod that they made room for, until all have gone.

Otherwise a small pod would take what the first victim leaves, and the rest would have gone for
nothing. A claim has an end, so that a victim that never goes does not block a node for ever.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

LONGEST_CLAIM_S = 120.0


@dataclass(slots=True)
class Claim:
    node: str
    until_s: float
    there: set[str]  # victims that have not gone yet
    kept: set[str] = field(default_factory=set)  # victims that have gone; their places are held


class Claims:
    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}  # by the uid of the pod that room is made for
        self._claimant: dict[str, str] = {}  # of each victim

    def make(self, uid: str, node: str, victims: tuple[str, ...], now_s: float) -> None:
        self._claims[uid] = Claim(node, now_s + LONGEST_CLAIM_S, set(victims))
        for victim in victims:
            self._claimant[victim] = uid

    def __contains__(self, uid: str) -> bool:
        return uid in self._claims

    def __len__(self) -> int:
        return len(self._claims)

    def items(self) -> Iterable[tuple[str, Claim]]:
        return self._claims.items()

    def victim_gone(self, victim: str) -> str | None:
        """Who claims its place, which is therefore to be kept. May be said twice."""
        uid = self._claimant.get(victim)
        if uid is not None:
            claim = self._claims[uid]
            claim.there.discard(victim)
            claim.kept.add(victim)
        return uid

    def is_complete(self, uid: str) -> bool:
        return not self._claims[uid].there

    def drop(self, uid: str) -> set[str]:
        """Victims that have gone and whose places are kept no more."""
        claim = self._claims.pop(uid, None)
        if claim is None:
            return set()
        for victim in claim.there | claim.kept:
            del self._claimant[victim]
        return claim.kept

    def due_s(self) -> float:
        return min((claim.until_s for claim in self._claims.values()), default=float("inf"))

    def overdue(self, now_s: float) -> list[str]:
        return [uid for uid, claim in self._claims.items() if claim.until_s <= now_s]
