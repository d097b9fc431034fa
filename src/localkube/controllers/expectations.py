"""Expectations: writes of a controller that its mirrors do not show yet.

Mirrors lag behind writes. A controller that has created three pods and reconciles again before its
mirror shows them would create three more. So it does not act until the mirror shows its own writes.
A create or update is visible when the mirror has reached the resourceVersion of the answer; a
deletion, when the object is gone or has a deletionTimestamp. After a timeout the controller acts
anyway: an answer may get lost, and then nothing would ever fulfil the expectation.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Protocol

from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import Resource

TIMEOUT_S = 30.0


class Seen(Protocol):
    """The part of a mirror that is needed here: the resourceVersion that it has reached."""

    @property
    def version(self) -> int: ...


@dataclass(slots=True)
class _Awaited:
    versions: dict[Resource, int] = field(default_factory=dict)
    deletions: set[str] = field(default_factory=set)  # uids
    since_s: float = 0.0


class Expectations:
    def __init__(self) -> None:
        self._awaited: dict[Key, _Awaited] = {}

    def wrote(self, key: Key, resource: Resource, answer: Obj, now_s: float) -> None:
        """`answer`: the object as the server returned it."""
        awaited = self._of(key, now_s)
        version = int(answer["metadata"]["resourceVersion"])
        awaited.versions[resource] = max(version, awaited.versions.get(resource, 0))

    def deleted(self, key: Key, uid: str, now_s: float) -> None:
        self._of(key, now_s).deletions.add(uid)

    def met(
        self, key: Key, mirrors: Callable[[Resource], Seen], alive: Set[str], now_s: float
    ) -> bool:
        """Whether all writes for the key are visible. `alive`: uids of objects in the mirror that
        are not being deleted."""
        awaited = self._awaited.get(key)
        if awaited is None:
            return True
        late = {r: v for r, v in awaited.versions.items() if mirrors(r).version < v}
        undeleted = awaited.deletions & alive
        if (late or undeleted) and now_s - awaited.since_s < TIMEOUT_S:
            awaited.versions, awaited.deletions = late, undeleted
            return False
        self.forget(key)
        return True

    def forget(self, key: Key) -> None:
        self._awaited.pop(key, None)

    def _of(self, key: Key, now_s: float) -> _Awaited:
        awaited = self._awaited.setdefault(key, _Awaited())
        awaited.since_s = now_s
        return awaited
