"""Health: which programs of a cluster work, which fail, and with which objects. No I/O.

A program that cannot handle one object works all the same: the object is noted beside it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kubeclient.objects import Obj

_MOST_OBJECTS = 100  # noted for each program


def named(obj: Obj) -> str:
    """An object, as a sentence names it: Pod default/web."""
    metadata = obj["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj.get('kind', '')} {place}{metadata['name']}".strip()


class Check(NamedTuple):
    """The state of one program."""

    name: str
    failure: str  # what went wrong; empty: it works
    objects: tuple[str, ...]  # which it cannot handle, and why


@dataclass(slots=True)
class _Program:
    running: int = 0  # tasks under this name
    failure: str = ""
    in_a_row: int = 0
    objects: dict[str, str] = field(default_factory=dict)


class Health:
    def __init__(self) -> None:
        self._programs: dict[str, _Program] = {}
        self._listeners: list[Callable[[], None]] = []

    def begins(self, name: str) -> None:
        self._programs.setdefault(name, _Program()).running += 1

    def ends(self, name: str) -> None:
        """It was stopped: what is over does not fail."""
        found = self._programs[name]
        found.running -= 1
        if found.running == 0:
            del self._programs[name]

    def fails(self, name: str, words: str) -> None:
        found = self._programs.setdefault(name, _Program())
        found.failure = words
        found.in_a_row += 1
        for listener in self._listeners:
            listener()

    def works(self, name: str) -> None:
        found = self._programs.get(name)
        if found is not None:
            found.failure, found.in_a_row = "", 0

    def cannot_handle(self, name: str, what: str, words: str) -> None:
        """The program goes on without this object."""
        objects = self._programs.setdefault(name, _Program()).objects
        if what in objects or len(objects) < _MOST_OBJECTS:
            objects[what] = words

    def can_handle(self, name: str, what: str) -> None:
        found = self._programs.get(name)
        if found is not None:
            found.objects.pop(what, None)

    def is_beyond(self, what: str) -> bool:
        """Whether a program cannot handle this object: nobody should wait for it."""
        return any(what in found.objects for found in self._programs.values())

    def __iter__(self) -> Iterator[Check]:
        """In the order in which the programs began. Parts of a program (`kubelet/usage`) appear
        while something is wrong with them: there may be hundreds."""
        for name, found in list(self._programs.items()):
            objects = tuple(f"{what}: {words}" for what, words in list(found.objects.items()))
            if "/" not in name or found.failure or objects:
                yield Check(name, found.failure, objects)

    def failing(self) -> list[Check]:
        return [check for check in self if check.failure]

    def fails_lastingly(self, failures: int) -> Check | None:
        """A program that failed so often in a row."""
        for name, found in list(self._programs.items()):
            if found.in_a_row >= failures:
                return Check(name, found.failure, ())
        return None

    def on_failure(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)
