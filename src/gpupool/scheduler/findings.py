"""Findings: what is wrong with nodes and pods, until somebody makes events of it."""

from collections.abc import Callable
from dataclasses import dataclass

from kubeclient.objects import Obj

OVERCOMMITTED = "Overcommitted"  # another scheduler bound a pod to a node without room for it
NOT_UNDERSTOOD = "NotUnderstood"  # part of a node or pod cannot be read
UNREAD = "UnknownCards"  # which cards a pod holds cannot be read: other pods get none of them

_MOST = 1024


@dataclass(frozen=True, slots=True)
class Finding:
    about: Obj
    reason: str
    message: str


class Findings:
    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed`: called when there is something to take."""
        self._changed = changed
        self._waiting: list[Finding] = []

    def add(self, about: Obj, reason: str, message: str) -> None:
        # Bounded, because nobody takes them while this process is not the leader.
        if len(self._waiting) < _MOST:
            self._waiting.append(Finding(about, reason, message))
            self._changed()

    def unread(self, pod: Obj, message: str) -> None:
        self.add(pod, UNREAD, message)

    def not_understood(self, obj: Obj, error: Exception | None) -> None:
        """A handler failed with this object (None: it does not fail any more)."""
        if error is not None:
            self.add(obj, NOT_UNDERSTOOD, f"the scheduler cannot read this object: {error!r}")

    def take(self) -> list[Finding]:
        """Those of the time since the last call."""
        taken, self._waiting = self._waiting, []
        return taken
