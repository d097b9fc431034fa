"""Pod groups: pods that start together or not at all.

Nothing is held for a part of a group: as many members as it needs are placed, or get room that is
being cleared, in one decision, or none. So two incomplete groups cannot block each other.

Who counts for the minimum:

- members with a node, and those whose Binding is on its way, unless they are terminating: their
  processes end soon;
- members that succeeded, for waiting members of the same controller. A Job goes on when one of its
  pods is done, and a pod that is tried again must not wait for that one. Pods of an earlier Job (of
  a CronJob) with the same group name do not count: they ended before this Job began;
- not members that failed: the pods that replace them count.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeVar

from gpupool.contract.names import LABEL_POD_GROUP, LABEL_POD_GROUP_MIN
from kubeclient.bounded_numbers import bounded_number
from kubeclient.objects import Obj

_MOST_MEMBERS = 100_000

K = TypeVar("K")
Key = tuple[str, str]  # namespace and name of a group


class Group(NamedTuple):
    """What a pod says of its group."""

    namespace: str
    name: str
    least: int  # this many members make it complete
    controller: str = ""  # uid of the pod's controller; empty: it has none

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)


class Standing(Enum):
    WAITING = "pending, without a node"
    PLACED = "has a node, or its Binding is on its way"
    SUCCEEDED = "has done its work"


def group_of(metadata: Obj) -> Group | str | None:
    """From the labels of a pod; a text: what is wrong with them.

    Without a minimum the pod is scheduled alone.
    """
    labels = metadata.get("labels") or {}
    name = labels.get(LABEL_POD_GROUP)
    if not name:
        return None
    text = labels.get(LABEL_POD_GROUP_MIN) or "1"
    count = bounded_number(text)
    if count is None or count > _MOST_MEMBERS:
        return f"label {LABEL_POD_GROUP_MIN}={text} (want a number from 1 to {_MOST_MEMBERS})"
    return Group(metadata["namespace"], name, max(count, 1), _controller(metadata))


def _controller(metadata: Obj) -> str:
    owners = metadata.get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


@dataclass(slots=True)
class _Members:
    """Counts are kept up to date: a try of one member must not look at thousands of others."""

    by_uid: dict[str, tuple[Group, Standing]] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)  # uids, in the order of arrival
    waiting_of: Counter[str] = field(default_factory=Counter)  # by controller
    succeeded_of: Counter[str] = field(default_factory=Counter)  # by controller
    placed: int = 0
    minimums: Counter[int] = field(default_factory=Counter)  # that living members state

    def count(self, uid: str, sign: int) -> None:
        group, standing = self.by_uid[uid]
        if standing is Standing.SUCCEEDED:
            # Pods without a controller have nobody who would try one of them again.
            if group.controller:
                _add(self.succeeded_of, group.controller, sign)
            return
        _add(self.minimums, group.least, sign)
        if standing is Standing.PLACED:
            self.placed += sign
            return
        _add(self.waiting_of, group.controller, sign)
        if sign > 0:
            self.waiting[uid] = None
        else:
            del self.waiting[uid]

    def settled(self) -> int:
        """How many of the minimum are placed or done."""
        waiting, done = self.waiting_of, self.succeeded_of
        fewer = done if len(done) < len(waiting) else waiting
        return self.placed + sum(done[each] for each in fewer if each in waiting)

    def missing(self) -> int:
        return max(self.minimums, default=0) - self.settled()


def _add(counts: Counter[K], key: K, change: int) -> None:
    counts[key] += change
    if not counts[key]:
        del counts[key]


class Groups:
    def __init__(self) -> None:
        self._members: dict[Key, _Members] = {}
        self._key: dict[str, Key] = {}  # of each member
        self._changed: set[Key] = set()

    def put(self, uid: str, group: Group | None, standing: Standing | None) -> None:
        """What the pod is to its group from now on, by what the API shows; None: nothing."""
        key = group.key if group and standing else None
        known = self._key.get(uid)
        if known is None and key is None:
            return
        before = {each: self._missing(each) for each in (known, key) if each is not None}
        if known is not None:
            self._drop(uid, known)
        if group and standing:
            self._add(uid, group, standing)
        self._changed |= {each for each in before if self._missing(each) != before[each]}

    def take_changed(self) -> set[Key]:
        """Groups that need fewer members than before, and may be able to start now, or more: the
        room that others leave for them is too little.
        """
        taken, self._changed = self._changed, set()
        return taken

    def decided(self, uid: str, standing: Standing) -> None:
        """A decision of our own about a member. Whoever makes it has looked at the whole group."""
        key = self._key.get(uid)
        if key is not None:
            group, _ = self._members[key].by_uid[uid]
            self._drop(uid, key)
            self._add(uid, group, standing)

    def waiting(self, key: Key) -> Collection[str]:
        """Uids of members without a node, in the order of arrival."""
        members = self._members.get(key)
        return members.waiting if members is not None else ()

    def missing(self, group: Group) -> int:
        """How many waiting members must be placed at once; 0 or less: each may be placed alone."""
        return self._missing(group.key)

    def here(self, group: Group) -> tuple[int, int]:
        """How many members of the group count, and how many it needs."""
        members = self._members[group.key]
        return len(members.waiting) + members.settled(), max(members.minimums)

    def __len__(self) -> int:
        return len(self._members)

    def _missing(self, key: Key) -> int:
        members = self._members.get(key)
        return members.missing() if members is not None else 0

    def _add(self, uid: str, group: Group, standing: Standing) -> None:
        self._key[uid] = group.key
        members = self._members.setdefault(group.key, _Members())
        members.by_uid[uid] = (group, standing)
        members.count(uid, 1)

    def _drop(self, uid: str, key: Key) -> None:
        del self._key[uid]
        members = self._members[key]
        members.count(uid, -1)
        del members.by_uid[uid]
        if not members.by_uid:
            del self._members[key]
