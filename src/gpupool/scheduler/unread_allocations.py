"""UnreadAllocations: says of each pod whose cards cannot be read which cards are closed by it."""

from collections.abc import Callable
from dataclasses import dataclass

from gpupool.core.gpu import Allocation
from gpupool.engine.cluster import ClusterModel
from kubeclient.objects import Obj

Say = Callable[[Obj, str], None]


@dataclass(slots=True)
class _Entry:
    pod: Obj
    why: str
    said: str = ""


class UnreadAllocations:
    def __init__(self, cluster: ClusterModel, say: Say) -> None:
        """`say`: reports a message about a pod."""
        self._cluster = cluster
        self._say = say
        self._entries: dict[str, _Entry] = {}  # by uid

    def __len__(self) -> int:
        return len(self._entries)

    def pod_seen(self, pod: Obj, allocation: Allocation) -> None:
        """After it was entered into the cluster."""
        uid = pod["metadata"]["uid"]
        if allocation.unread is None:
            self._entries.pop(uid, None)
            return
        said = self._entries[uid].said if uid in self._entries else ""
        entry = self._entries[uid] = _Entry(pod, allocation.unread.why, said)
        self._tell(entry)

    def gone(self, uid: str) -> None:
        self._entries.pop(uid, None)

    def node_seen(self, name: str) -> None:
        """Its cards may be others now."""
        for entry in self._entries.values():
            if entry.pod["spec"]["nodeName"] == name:
                self._tell(entry)

    def _tell(self, entry: _Entry) -> None:
        cards = self._closed_by(entry.pod["metadata"]["uid"])
        if not cards:  # its node has no cards, or is not known yet
            return
        node, listed = entry.pod["spec"]["nodeName"], ", ".join(map(str, cards))
        closed = f"card {listed} of node {node} takes no other pods"
        if len(cards) > 1:
            closed = f"cards {listed} of node {node} take no other pods"
        words = (
            f"Which cards this pod holds cannot be read: {entry.why}. Until it has gone, {closed}. "
            "Delete it and let gpupool place it again, or run the version of gpupool that placed it"
        )
        if words != entry.said:
            entry.said = words
            self._say(entry.pod, words)

    def _closed_by(self, uid: str) -> list[int]:
        held = self._cluster.held(uid)
        state = self._cluster.state(held.node) if held is not None else None
        if held is None or state is None:
            return []
        rows = (state.card_rows.get(hold.uuid) for hold in held.cards if hold.possible)
        return sorted(state.cards[row].card.index for row in rows if row is not None)
