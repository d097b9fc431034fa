"""What a ReplicaSet has to know of its pods, kept up to date with every change.

A set of ten thousand pods is looked at again and again; parsing all of them each time would hold
up everybody else for as long as it takes.
"""

import msgspec

from gpupool.contract.objects import Obj
from gpupool.kube.mirror import Key, Mirror, controller_uid, key_of
from gpupool.localcluster.controllers.pods import (
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


class Facts:
    """By the owner that manages the pod; of owners of one kind only."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._of: dict[str, dict[Key, Fact]] = {}

    def follow(self, pods: Mirror) -> None:
        pods.on_change(self._changed)

    def of(self, owner_uid: str) -> list[Fact]:
        return list(self._of.get(owner_uid, {}).values())

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        before = "" if old is None else self._owner(old)
        after = "" if new is None else self._owner(new)
        if old is not None and before and before != after:
            known = self._of.get(before, {})
            known.pop(key_of(old), None)
            if not known:
                self._of.pop(before, None)
        if new is not None and after:
            self._of.setdefault(after, {})[key_of(new)] = fact_of(new)

    def _owner(self, pod: Obj) -> str:
        for owner in pod["metadata"].get("ownerReferences") or ():
            if owner.get("controller") and owner["kind"] == self._kind:
                return controller_uid(pod)
        return ""
