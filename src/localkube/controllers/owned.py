"""Owned: what a controller has to know of the objects of each owner, kept up to date with every
change.

An owner of ten thousand pods is looked at again and again; parsing all of them each time would
hold up everybody else for as long as it takes.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from kubeclient.mirror import Key, Mirror, key_of
from kubeclient.objects import Obj

T = TypeVar("T")


class Owned(Generic[T]):
    """By the uid of the owner that manages the object; of owners of one kind only."""

    def __init__(self, kind: str, fact_of: Callable[[Obj], T]) -> None:
        self._kind = kind
        self._fact_of = fact_of
        self._of: dict[str, dict[Key, T]] = {}

    def follow(self, mirror: Mirror) -> None:
        mirror.on_change(self._changed)

    def of(self, owner_uid: str) -> list[T]:
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
            self._of.setdefault(after, {})[key_of(new)] = self._fact_of(new)

    def _owner(self, obj: Obj) -> str:
        for owner in obj["metadata"].get("ownerReferences") or ():
            if owner.get("controller") and owner["kind"] == self._kind:
                return str(owner["uid"])
        return ""
