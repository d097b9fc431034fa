"""Resizing: pods with a resize request, and when each of them is evaluated next.

While a request is being granted the pod holds the larger of both shares, until the watch shows the
pod without that request. The write carries the resourceVersion of the pod with the request. So once
the request is gone, an earlier write whose answer was lost cannot succeed any more, and it is safe
to hold only what the annotation says.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpupool.contract.resize import ShrinkReport, node_reports
from gpupool.core.gpu import Allocation
from gpupool.core.resize import larger
from gpupool.scheduler.resize_step import Resizable, resizable_of
from kubeclient.objects import Obj

_NEVER = float("inf")
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 30.0


@dataclass(slots=True, eq=False)
class Entry:
    pod: Resizable
    holds: Allocation
    due_s: float = 0.0  # infinite: not before the pod or its node changes
    pause_s: float = _FIRST_PAUSE_S


class Resizing:
    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed`: called when an entry becomes due."""
        self._changed = changed
        self._entries: dict[str, Entry] = {}
        self._reports: dict[str, Mapping[str, ShrinkReport]] = {}  # by node
        self._due_s = _NEVER

    def seen(self, pod: Obj, allocation: Allocation) -> Allocation:
        """The allocation that this bound pod holds from now on."""
        uid = pod["metadata"]["uid"]
        found, known = resizable_of(pod, allocation), self._entries.get(uid)
        if found is None:
            self._entries.pop(uid, None)
            return allocation
        if known is not None and known.pod.question == found.question:
            # The next write needs the new resourceVersion. Hold and due time stay, or every update
            # by the kubelet would cause another evaluation.
            known.pod = found
            return known.holds
        # Request or share have changed, and with them the resourceVersion: earlier writes cannot
        # succeed any more, so the hold starts again from the annotation.
        self._entries[uid] = Entry(found, allocation)
        self._is_due(0.0)
        return allocation

    def gone(self, uid: str) -> None:
        self._entries.pop(uid, None)

    def node_seen(self, old: Obj | None, new: Obj | None) -> None:
        node = (new or old or {})["metadata"]["name"]
        reports = node_reports(new) if new is not None else {}
        if reports == self._reports.get(node, {}):
            return
        self._reports.pop(node, None)
        if reports:  # or nodes that come and go would pile up
            self._reports[node] = reports
        for entry in self._entries.values():
            # Entries with a due time wait after a failure: a report must not cut that short.
            if entry.pod.node == node and entry.due_s == _NEVER:
                entry.due_s = 0.0
                self._is_due(0.0)

    def report(self, pod: Resizable) -> ShrinkReport | None:
        return self._reports.get(pod.node, {}).get(pod.uid)

    def entries(self) -> list[Entry]:
        return list(self._entries.values())

    def due_s(self) -> float:
        return self._due_s

    def take_due(self, now_s: float) -> list[Entry]:
        """The due entries. Each is not due again before `again` or a change."""
        if self._due_s > now_s:
            return []
        found = [entry for entry in self._entries.values() if entry.due_s <= now_s]
        for entry in found:
            entry.due_s = _NEVER
        self._due_s = min((entry.due_s for entry in self._entries.values()), default=_NEVER)
        return found

    def hold(self, entry: Entry, allocation: Allocation) -> Allocation:
        """Hold at least this, and never less than before: an earlier write may still arrive."""
        entry.holds = larger(entry.holds, allocation)
        return entry.holds

    def again(self, entry: Entry, now_s: float) -> None:
        """Retry with backoff after a failure, unless the pod has a new request meanwhile."""
        # By identity: a new request of the same pod has an entry of its own.
        if self._entries.get(entry.pod.uid) is entry:
            entry.due_s = now_s + entry.pause_s
            entry.pause_s = min(2 * entry.pause_s, _LONGEST_PAUSE_S)
            self._is_due(entry.due_s)

    def _is_due(self, when_s: float) -> None:
        self._due_s = min(self._due_s, when_s)
        self._changed()
