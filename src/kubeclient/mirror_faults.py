"""Faults: which objects a mirror's indexes and callbacks fail with.

One object that a program does not understand must not stop the program. Each fault is told to
whoever asked to know, and logged once: an object that changes every second and fails each time
would fill the log. So would the tracebacks of a mistake that a hundred thousand objects run into:
each mistake has one.
"""

import logging
from collections.abc import Callable

from kubeclient.objects import Obj
from kubeclient.resources import Resource

log = logging.getLogger(__name__)

_MOST_TRACEBACKS = 100  # of one resource
_MOST_LINES = 1_000

Key = tuple[str, str]  # namespace, name
# Called with an object and what it caused; with None once it causes nothing any more.
Broke = Callable[[Obj, Exception | None], None]


def unheard(_obj: Obj, _error: Exception | None) -> None:
    """Nobody asked: the log says it."""


class Faults:
    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        # Of an object, and a function of the program: the words, and who is told.
        self._known: dict[Key, dict[str, tuple[str, Broke]]] = {}
        self._traced: set[tuple[str, str]] = set()

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, key: Key, obj: Obj, where: str, error: Exception, told: Broke) -> None:
        found = self._known.setdefault(key, {})
        words, known = text_of(error), found.get(where)
        found[where] = (words, told)
        extra = {
            "resource": self._resource.plural,
            "object": "/".join(part for part in key if part),
            "where": where,
        }
        if known is None or known[0] != words:
            is_new = (where, words) not in self._traced
            if is_new and len(self._traced) < _MOST_TRACEBACKS:
                self._traced.add((where, words))
                log.error("object not understood", extra=extra, exc_info=error)
            elif len(self._known) <= _MOST_LINES:
                log.error("object not understood", extra=extra | {"error": words})
        _tell(told, obj, error)

    def remove(self, key: Key, obj: Obj, where: str) -> None:
        """This function has no trouble with the object any more."""
        found = self._known.get(key, {})
        known = found.pop(where, None)
        if known is not None:
            if not found:
                del self._known[key]
            _tell(known[1], obj, None)

    def forget(self, key: Key, obj: Obj) -> None:
        """The object is gone."""
        for _, told in self._known.pop(key, {}).values():
            _tell(told, obj, None)


def text_of(error: BaseException) -> str:
    """What an error says; its type alone if it cannot say anything."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001  # an error about an error would hide the first one
        words = ""
    name = type(error).__name__
    return f"{name}: {words[:500]}" if words else name


def _tell(told: Broke, obj: Obj, error: Exception | None) -> None:
    try:
        told(obj, error)
    except Exception:  # a fault of the report is no reason to stop, either
        log.exception("a fault could not be told")
