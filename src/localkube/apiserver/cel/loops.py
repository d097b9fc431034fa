"""Macros over lists and maps: all, exists, map, filter and their kin."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from localkube.apiserver.cel.errors import EvaluationError, no_such_overload
from localkube.apiserver.cel.frame import Frame, Run
from localkube.apiserver.cel.types import BOOL, LIST, MAP, OPTIONAL, Type
from localkube.apiserver.cel.values import MixedKeys, Optional, has_key, with_entry

_ROUND = 3  # what one round costs beside the expressions in it

_Body = Callable[[Frame], Any]


def _rounds(frame: Frame, over: Any, names: tuple[str, ...]) -> Iterator[None]:
    """Sets the names for each item in turn."""
    if not isinstance(over, list | Mapping):
        raise no_such_overload()
    if len(names) == 1:
        for item in over:
            frame.charge(_ROUND)
            frame.names[names[0]] = item
            yield
    else:
        for first, second in over.items() if isinstance(over, Mapping) else enumerate(over):
            frame.charge(_ROUND)
            frame.names[names[0]], frame.names[names[1]] = first, second
            yield


def keeping(names: tuple[str, ...], loop: Run) -> Run:
    """Behind the loop, the names mean what they meant before it."""

    def run(frame: Frame) -> Any:
        kept = {name: frame.names[name] for name in names if name in frame.names}
        try:
            return loop(frame)
        finally:
            for name in names:
                frame.names.pop(name, None)
            frame.names.update(kept)

    return run


def _condition(body: _Body, frame: Frame) -> bool:
    found = body(frame)
    if not isinstance(found, bool):
        raise no_such_overload()
    return found


def _any(wanted: bool) -> Callable[..., Run]:
    """The first `wanted` decides, even after an item that could not be judged."""

    def made(over: Run, names: tuple[str, ...], condition: Run) -> Run:
        def run(frame: Frame) -> bool:
            failed: EvaluationError | None = None
            for _ in _rounds(frame, over(frame), names):
                try:
                    if _condition(condition, frame) is wanted:
                        return wanted
                except EvaluationError as error:
                    failed = failed or error
            if failed is not None:
                raise failed
            return not wanted

        return run

    return made


def _exists_one(over: Run, names: tuple[str, ...], condition: Run) -> Run:
    def run(frame: Frame) -> bool:
        rounds = _rounds(frame, over(frame), names)
        return sum(_condition(condition, frame) for _ in rounds) == 1

    return run


def _filter(over: Run, names: tuple[str, ...], condition: Run) -> Run:
    def run(frame: Frame) -> list[Any]:
        rounds = _rounds(frame, over(frame), names)
        return [frame.names[names[0]] for _ in rounds if _condition(condition, frame)]

    return run


def _list(over: Run, names: tuple[str, ...], *bodies: Run) -> Run:
    *conditions, made = bodies

    def run(frame: Frame) -> list[Any]:
        return [
            made(frame)
            for _ in _rounds(frame, over(frame), names)
            if all(_condition(each, frame) for each in conditions)
        ]

    return run


def _map(over: Run, names: tuple[str, ...], *bodies: Run) -> Run:
    *conditions, made = bodies

    def run(frame: Frame) -> Mapping[Any, Any]:
        found: dict[Any, Any] | MixedKeys = {}
        for _ in _rounds(frame, over(frame), names):
            if all(_condition(each, frame) for each in conditions):
                found = with_entry(found, frame.names[names[0]], made(frame))
        return found

    return run


def _map_entries(over: Run, names: tuple[str, ...], *bodies: Run) -> Run:
    *conditions, made = bodies

    def run(frame: Frame) -> Mapping[Any, Any]:
        found: dict[Any, Any] | MixedKeys = {}
        for _ in _rounds(frame, over(frame), names):
            if not all(_condition(each, frame) for each in conditions):
                continue
            entries = made(frame)
            if not isinstance(entries, Mapping):
                raise no_such_overload()
            for key, value in entries.items():
                if has_key(found, key):
                    raise EvaluationError(f"insert failed: key {key} already exists")
                found = with_entry(found, key, value)
        return found

    return run


def _opt_map(*, flat: bool) -> Callable[..., Run]:
    def made(over: Run, names: tuple[str, ...], body: Run) -> Run:
        def run(frame: Frame) -> Optional:
            given = over(frame)
            if not isinstance(given, Optional):
                raise no_such_overload()
            found: Any = Optional.NONE
            for _ in _rounds(frame, list(given.values), names):
                found = body(frame)
                if not flat:
                    found = Optional((found,))
            if not isinstance(found, Optional):
                raise no_such_overload()
            return found

        return run

    return made


LOOPS: dict[str, tuple[Callable[..., Run], Type]] = {
    "all": (_any(False), BOOL),
    "exists": (_any(True), BOOL),
    "exists_one": (_exists_one, BOOL),
    "existsOne": (_exists_one, BOOL),
    "filter": (_filter, LIST),
    "map": (_list, LIST),
    "transformList": (_list, LIST),
    "transformMap": (_map, MAP),
    "transformMapEntry": (_map_entries, MAP),
    "optMap": (_opt_map(flat=False), OPTIONAL),
    "optFlatMap": (_opt_map(flat=True), OPTIONAL),
}
