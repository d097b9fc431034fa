"""Pod groups: pods that start together or not at all.

Nothing is held while a group waits: all its members are placed in one decision, or none. So two
incomplete groups cannot block each other.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from gpupool.contract.names import LABEL_POD_GROUP, LABEL_POD_GROUP_MIN

_MOST_MEMBERS = 100_000


class Group(NamedTuple):
    namespace: str
    name: str
    least: int  # this many members make it complete


def group_of(namespace: str, labels: Mapping[str, str]) -> Group | None:
    """A minimum that is not a number counts as 1: the pod is scheduled alone."""
    name = labels.get(LABEL_POD_GROUP)
    if not name:
        return None
    text = labels.get(LABEL_POD_GROUP_MIN, "")
    least = int(text) if text.isdecimal() and len(text) < 7 else 1
    return Group(namespace, name, min(max(least, 1), _MOST_MEMBERS))


class Groups:
    """The members of each group, bound or pending."""

    def __init__(self) -> None:
        self._members: dict[tuple[str, str], dict[str, Group]] = {}
        self._group: dict[str, Group] = {}

    def put(self, uid: str, group: Group | None) -> None:
        if self._group.get(uid) == group:
            return
        self.remove(uid)
        if group is not None:
            self._group[uid] = group
            self._members.setdefault((group.namespace, group.name), {})[uid] = group

    def remove(self, uid: str) -> None:
        group = self._group.pop(uid, None)
        if group is None:
            return
        key = (group.namespace, group.name)
        del self._members[key][uid]
        if not self._members[key]:
            del self._members[key]

    def members(self, group: Group) -> Collection[str]:
        return self._members.get((group.namespace, group.name), {})

    def least(self, group: Group) -> int:
        """The largest minimum that any member states."""
        members = self._members.get((group.namespace, group.name), {})
        return max((member.least for member in members.values()), default=group.least)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._members)
