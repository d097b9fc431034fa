"""Watches: up-to-date copies of what visitors look at, one for each resource and set of rights.

All pages of all visitors with the same rights read the same copy. A page says which copies it has
read, and waits for the next change of one of them. A copy that nobody has read for a while ends.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from kubeclient.client import Kube
from kubeclient.mirror import Changed, Key, Mirror, key_of
from kubeclient.objects import Obj
from kubeclient.resources import Resource

_FIRST_READ_LIMIT_S = 30.0
_UNUSED_FOR_S = 120.0
_MOST = 200  # copies at a time; the one that was read longest ago makes room

Row = TypeVar("Row")


class What(NamedTuple):
    resource: Resource
    namespace: str = ""
    field_selector: str = ""


# A copy; or the name of something that the console does for the visitor, and that pages show.
Topic = What | str


class NotRead(Exception):
    """The API server has not answered the first question yet."""


class Watch:
    """A copy of one resource, the values that pages make of its objects, and a count of changes."""

    def __init__(self, kube: Kube, what: What, changed: Callable[[], None]) -> None:
        query = {"fieldSelector": what.field_selector} if what.field_selector else None
        self.what = what
        self.mirror = Mirror(kube, what.resource, namespace=what.namespace, query=query)
        self.count = 0
        self.used_s = 0.0
        self.is_pinned = False  # others follow it: it must not end
        self._changed = changed
        self._rows: dict[Callable[[Obj], Any], dict[Key, Any]] = {}
        self.mirror.on_change(self._count)
        self.task: asyncio.Task[None] | None = None

    def rows(self, make: Callable[[Obj], Row]) -> Mapping[Key, Row]:
        """What `make` makes of each object. Made once for each change of an object, and not for
        each page: `make` has to be a function of a module."""
        held = self._rows.get(make)
        if held is None:
            held = self._rows[make] = {}
            self.mirror.on_change(_keeper(held, make))
        return held

    def _count(self, _old: Obj | None, _new: Obj | None) -> None:
        self.count += 1
        self._changed()


def _keeper(held: dict[Key, Row], make: Callable[[Obj], Row]) -> Changed:
    def changed(old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            held[key_of(new)] = make(new)
        elif old is not None:
            held.pop(key_of(old), None)

    return changed


@dataclass(slots=True)
class Watches:
    kube: Kube
    clock: Callable[[], float]
    _open: dict[What, Watch] = field(default_factory=dict)
    _said: dict[str, int] = field(default_factory=dict)
    _next: asyncio.Event = field(default_factory=asyncio.Event)

    async def of(self, what: What) -> Watch:
        """Raises NotRead. Whether the visitor may see it was asked before (`rights.py`)."""
        watch = self._open.get(what)
        if watch is None:
            await self._make_room()
            watch = self._open[what] = Watch(self.kube, what, self._tell)
            name = f"console-watch-{what.resource.plural}"
            watch.task = asyncio.create_task(watch.mirror.run(), name=name)
        watch.used_s = self.clock()
        try:
            async with asyncio.timeout(_FIRST_READ_LIMIT_S):
                await watch.mirror.wait_synced()
        except TimeoutError:
            raise NotRead(what.resource.plural) from None
        return watch

    async def next_change(self, seen: Mapping[Topic, int], within_s: float) -> bool:
        """Waits until something has changed since `seen`. False: nothing has."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not self._has_changed(seen):
                    await self._next.wait()
        for topic in seen:  # somebody is looking at it
            if not isinstance(topic, str) and topic in self._open:
                self._open[topic].used_s = self.clock()
        return self._has_changed(seen)

    async def end_unused(self) -> None:
        oldest = self.clock() - _UNUSED_FOR_S
        await self._end(
            what
            for what, watch in list(self._open.items())
            if watch.used_s < oldest and not watch.is_pinned
        )

    async def end_all(self) -> None:
        await self._end(list(self._open))

    def say(self, topic: str) -> None:
        """Pages that show it are made again."""
        self._said[topic] = self.count(topic) + 1
        self._tell()

    def count(self, topic: Topic) -> int:
        """Of changes so far; -1: a copy that has ended."""
        if isinstance(topic, str):
            return self._said.get(topic, 0)
        return self._open[topic].count if topic in self._open else -1

    def _has_changed(self, seen: Mapping[Topic, int]) -> bool:
        return any(self.count(topic) != count for topic, count in seen.items())

    def _tell(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    async def _make_room(self) -> None:
        await self.end_unused()
        if len(self._open) >= _MOST:
            loose = [watch for watch in self._open.values() if not watch.is_pinned]
            await self._end([min(loose, key=lambda each: each.used_s).what] if loose else [])

    async def _end(self, which: Iterable[What]) -> None:
        tasks = [task for what in which if (task := self._open.pop(what).task) is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
