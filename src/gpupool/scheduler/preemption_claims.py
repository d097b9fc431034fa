"""PreemptionClaims: the room that victims leave is kept for the pod that preempted them.

Without it a small pod would take what the first victim leaves, the preempting pod would still not
fit, and the victims would have been evicted for nothing.

A claim is a reservation in the cluster: node and cards that the pod will get, from the decision on,
before the first victim has gone. While its own victims are there, what they hold is not reserved a
second time, so other room of the node stays free for others. Every decision about another pod
leaves that room alone, as kube-scheduler does for nominated pods. Only a pod of higher priority may
take it (`RoomMaker`).

A claim ends when its pod is bound or gone, when it does not fit there any more, or at its time: the
longest grace period of its victims and `SLACK_S`. A victim that does not terminate must not block
a node for ever; after that time it is not chosen again for a while (`Spared`).
"""

from collections.abc import Collection, ItemsView, Iterator, Sequence
from dataclasses import dataclass

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement
from gpupool.engine.node_state import Held

SLACK_S = 120.0  # after the grace period of the victims, and after the last of them has gone
SPARED_S = 300.0


@dataclass(slots=True)
class PreemptionClaim:
    request: PodRequest
    placement: Placement
    until_s: float
    own: set[str]  # victims that leave for this pod
    remaining: set[str]  # victims that have not gone yet: its own, and others that it waits for
    failed: bool = False  # its victims could not be evicted: the pod looks for other room


class PreemptionClaims:
    def __init__(self, cluster: ClusterModel) -> None:
        self._cluster = cluster
        self._claims: dict[str, PreemptionClaim] = {}  # by uid of the preempting pod
        self._changed: set[str] = set()  # nodes

    def make(
        self, request: PodRequest, placement: Placement, victims: Sequence[Held], now_s: float
    ) -> None:
        self._claims[request.uid] = PreemptionClaim(
            request, placement, now_s + SLACK_S, set(), set()
        )
        self.wait_for(request.uid, victims, now_s)

    def wait_for(self, uid: str, victims: Sequence[Held], now_s: float) -> None:
        """These are leaving for the pod as well."""
        claim = self._claims[uid]
        uids = {held.pod.uid for held in victims}
        claim.own |= uids
        claim.remaining |= uids
        grace_s = max((held.pod.grace_s for held in victims), default=0)
        claim.until_s = max(claim.until_s, now_s + grace_s + SLACK_S)
        self._reserve(claim)

    def share(self, uid: str) -> None:
        """The pod takes what the victims of the other claims on its node leave beside these."""
        claim = self._claims[uid]
        for other in self._claims.values():
            if other.own and other.placement.node == claim.placement.node:
                claim.remaining |= other.own
                claim.until_s = max(claim.until_s, other.until_s)

    def join(self, uids: Collection[str]) -> None:
        """The claims of a group: each lasts until the victims of all of them have gone."""
        claims = [self._claims[uid] for uid in uids if uid in self._claims]
        for claim in claims:
            claim.remaining = {victim for each in claims for victim in each.remaining}
            claim.until_s = max(each.until_s for each in claims)

    def move(self, uid: str, placement: Placement) -> None:
        """Other cards of the same node."""
        self._claims[uid].placement = placement
        self._reserve(self._claims[uid])

    def _reserve(self, claim: PreemptionClaim) -> None:
        self._cluster.reserve(claim.request, *claim.placement, claim.own)

    def __contains__(self, uid: str) -> bool:
        return uid in self._claims

    def __iter__(self) -> Iterator[str]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)

    def get(self, uid: str) -> PreemptionClaim | None:
        return self._claims.get(uid)

    def items(self) -> ItemsView[str, PreemptionClaim]:
        return self._claims.items()

    def on(self, node: str) -> list[str]:
        """The pods that have claims on this node."""
        return [uid for uid, claim in self._claims.items() if claim.placement.node == node]

    def node_changed(self, node: str) -> None:
        if self._claims:
            self._changed.add(node)

    def changed_nodes(self) -> list[str]:
        """Each is told once."""
        changed = sorted(self._changed)
        self._changed.clear()
        return changed

    def leaving(self) -> set[str]:
        """All victims that have not gone yet."""
        return {uid for claim in self._claims.values() for uid in claim.remaining}

    def victim_gone(self, victim: str, now_s: float) -> None:
        """After it was released."""
        for uid, claim in self._claims.items():
            if victim in claim.remaining:
                claim.remaining.discard(victim)
                if not claim.remaining:
                    claim.until_s = now_s + SLACK_S
            if victim in claim.own:
                claim.own.discard(victim)
                if uid in self._cluster.reserved:
                    self._reserve(claim)

    def suspend(self, uid: str) -> None:
        """The pod was placed: it holds its room itself, until it is bound or `resume`."""
        if uid in self._claims:
            self._cluster.unreserve(uid)

    def resume(self, uid: str) -> None:
        """The pod's Binding was refused: its room is kept again."""
        claim = self._claims.get(uid)
        if claim is not None:
            self._reserve(claim)

    def fail(self, uid: str) -> None:
        claim = self._claims.get(uid)
        if claim is not None:
            claim.failed = True

    def is_reserved(self, uid: str) -> bool:
        """Whether the pod has a claim that is not suspended."""
        return uid in self._claims and uid in self._cluster.reserved

    def drop(self, uid: str) -> bool:
        """Whether room became free."""
        return self._claims.pop(uid, None) is not None and self._cluster.unreserve(uid)

    def due_s(self) -> float:
        return min((claim.until_s for claim in self._claims.values()), default=float("inf"))

    def overdue(self, now_s: float) -> list[tuple[str, PreemptionClaim]]:
        return [each for each in self._claims.items() if each[1].until_s <= now_s]


class Spared:
    """Pods that are not chosen as victims for a while: to evict them failed, or takes too long."""

    def __init__(self) -> None:
        self._until_s: dict[str, float] = {}  # by uid

    def add(self, uids: Collection[str], now_s: float) -> None:
        # In the order of time: the first ones end first.
        for uid in uids:
            self._until_s.pop(uid, None)
            self._until_s[uid] = now_s + SPARED_S

    def expire(self, now_s: float) -> bool:
        """Whether pods may be chosen again that could not be chosen before."""
        before = len(self._until_s)
        return len(self.now(now_s)) < before

    def due_s(self) -> float:
        return next(iter(self._until_s.values()), float("inf"))

    def now(self, now_s: float) -> Collection[str]:
        while self._until_s:
            first = next(iter(self._until_s))
            if self._until_s[first] > now_s:
                break
            del self._until_s[first]
        return self._until_s.keys()

    def gone(self, uid: str) -> None:
        self._until_s.pop(uid, None)
