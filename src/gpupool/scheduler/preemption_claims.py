"""PreemptionClaims: the room that victims leave is kept for the pod that preempted them.

Without it a small pod would take what the first victim leaves, the preempting pod would still not
fit, and the victims would have been evicted for nothing. So a victim that has gone stays in the
ledger until all victims of that preemption have gone (`ClusterState._gone`). A claim expires after
two minutes: a victim that does not terminate must not block a node for ever.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

LONGEST_CLAIM_S = 120.0


@dataclass(slots=True)
class PreemptionClaim:
    node: str
    until_s: float
    remaining: set[str]  # victims that have not gone yet
    gone: set[str] = field(default_factory=set)  # victims that have gone, but are still held


class PreemptionClaims:
    def __init__(self) -> None:
        self._claims: dict[str, PreemptionClaim] = {}  # by uid of the preempting pod
        self._claimant: dict[str, str] = {}  # uid of the victim -> uid of the preempting pod

    def make(self, uid: str, node: str, victims: tuple[str, ...], now_s: float) -> None:
        self._claims[uid] = PreemptionClaim(node, now_s + LONGEST_CLAIM_S, set(victims))
        # A victim has one claimant: `RoomMaker.preempt` searches in a trial in which the victims of
        # earlier preemptions are released already.
        for victim in victims:
            self._claimant[victim] = uid

    def __contains__(self, uid: str) -> bool:
        return uid in self._claims

    def __len__(self) -> int:
        return len(self._claims)

    def items(self) -> Iterable[tuple[str, PreemptionClaim]]:
        return self._claims.items()

    def victim_gone(self, victim: str) -> str | None:
        """Who claims the victim's room; None: nobody, so it can be released. Idempotent."""
        uid = self._claimant.get(victim)
        if uid is not None:
            claim = self._claims[uid]
            claim.remaining.discard(victim)
            claim.gone.add(victim)
        return uid

    def is_complete(self, uid: str) -> bool:
        return not self._claims[uid].remaining

    def drop(self, uid: str) -> set[str]:
        """End the claim. Returns the victims that have gone: the caller releases their room."""
        claim = self._claims.pop(uid, None)
        if claim is None:
            return set()
        # Victims that have not gone stay in the ledger: their processes still use the cards.
        for victim in claim.remaining | claim.gone:
            del self._claimant[victim]
        return claim.gone

    def due_s(self) -> float:
        return min((claim.until_s for claim in self._claims.values()), default=float("inf"))

    def overdue(self, now_s: float) -> list[str]:
        return [uid for uid, claim in self._claims.items() if claim.until_s <= now_s]
