"""What a ReplicaSet has to know of a pod. Pure."""

import msgspec

from kubeclient.mirror import Key, key_of
from kubeclient.objects import Obj
from localkube.controllers.pods import (
    Standing,
    is_finished,
    is_terminating,
    standing_of,
)


class Fact(msgspec.Struct, frozen=True, gc=False):
    """One pod."""

    key: Key
    labels: dict[str, str]
    node: str
    active: bool
    leaving: bool  # on its way out, and not yet ended
    standing: Standing

    @property
    def uid(self) -> str:
        return self.standing.uid

    @property
    def ready(self) -> bool:
        return self.standing.ready_since_s is not None

    def seconds_to_available(self, min_ready_s: int, now_s: float) -> float | None:
        """0 when it is available now; None when it is not even ready."""
        since_s = self.standing.ready_since_s
        if since_s is None:
            return None
        return max(0.0, since_s + min_ready_s - now_s) if min_ready_s else 0.0


def fact_of(pod: Obj) -> Fact:
    finished, terminating = is_finished(pod), is_terminating(pod)
    return Fact(
        key=key_of(pod),
        labels=pod["metadata"].get("labels") or {},
        node=pod["spec"].get("nodeName", ""),
        active=not finished and not terminating,
        leaving=terminating and not finished,
        standing=standing_of(pod),
    )
