"""Functions of strings; `indexOf`, `contains` and `reverse` also of lists where CEL has both."""

import json
import re
from collections.abc import Mapping
from typing import Any

from localkube.apiserver.cel.conversions import to_string
from localkube.apiserver.cel.errors import EvaluationError, no_such_overload
from localkube.apiserver.cel.frame import Frame
from localkube.apiserver.cel.function import Function, method
from localkube.apiserver.cel.patterns import translated
from localkube.apiserver.cel.types import BOOL, INT, LIST, STRING
from localkube.apiserver.cel.values import equal, pieces
from localkube.apiserver.cel_library import cel

_LOWER = {code: code + 32 for code in range(65, 91)}
_UPPER = {code: code - 32 for code in range(97, 123)}
_VERB = re.compile(r"%(?:\.(\d{1,3}))?(.)", re.DOTALL)
_MATCHES = "text.matches(pattern)"


def _texts(frame: Frame, *values: Any) -> None:
    """All are strings; going through them is paid for."""
    for value in values:
        if not isinstance(value, str):
            raise no_such_overload()
        frame.charge(pieces(len(value)))


def _numbers(*values: Any) -> None:
    if any(type(value) is not int for value in values):
        raise no_such_overload()


def _matches(frame: Frame, text: Any, pattern: Any) -> bool:
    """By the library, whose time grows with the text and never explodes."""
    _texts(frame, text, pattern)
    searched = translated(pattern)
    frame.charge(searched.cost + pieces(len(text)) * (1 + len(pattern) // 4))
    try:
        found = cel().evaluate(_MATCHES, {"text": text, "pattern": searched.text})
    except (ValueError, TypeError, RuntimeError):
        raise EvaluationError(f"error parsing regexp: `{pattern}`") from None
    return bool(found)


def _contains(frame: Frame, text: Any, part: Any) -> bool:
    _texts(frame, text, part)
    return part in text


def _starts(frame: Frame, text: Any, part: Any) -> bool:
    _texts(frame, part)
    if not isinstance(text, str):
        raise no_such_overload()
    return text.startswith(part)


def _ends(frame: Frame, text: Any, part: Any) -> bool:
    _texts(frame, part)
    if not isinstance(text, str):
        raise no_such_overload()
    return text.endswith(part)


def _char_at(frame: Frame, text: Any, at: Any) -> str:
    _texts(frame, text)
    _numbers(at)
    if not 0 <= at <= len(text):
        raise EvaluationError(f"index out of range: {at}")
    return str(text[at : at + 1])


def _index_of(frame: Frame, value: Any, part: Any, start: Any = 0) -> int:
    if isinstance(value, list):
        hits = (i for i, item in enumerate(value) if equal(item, part, frame.charge))
        return next(hits, -1)
    _texts(frame, value, part)
    _numbers(start)
    if not 0 <= start <= len(value):
        raise EvaluationError(f"index out of range: {start}")
    return int(value.find(part, start))


def _last_index_of(frame: Frame, value: Any, part: Any, start: Any = None) -> int:
    if isinstance(value, list):
        hits = [i for i, item in enumerate(value) if equal(item, part, frame.charge)]
        return hits[-1] if hits else -1
    _texts(frame, value, part)
    if start is None:
        return int(value.rfind(part))
    _numbers(start)
    if not 0 <= start <= len(value):
        raise EvaluationError(f"index out of range: {start}")
    return int(value.rfind(part, 0, start + len(part)))


def _replace(frame: Frame, text: Any, old: Any, new: Any, limit: Any = -1) -> str:
    _texts(frame, text, old, new)
    _numbers(limit)
    hits = len(text) + 1 if not old else text.count(old)
    frame.charge(pieces(hits * len(new)))
    return str(text.replace(old, new, limit if limit >= 0 else -1))


def _split(frame: Frame, text: Any, separator: Any, limit: Any = -1) -> list[str]:
    _texts(frame, text, separator)
    _numbers(limit)
    if limit == 0:
        return []
    parts = text.split(separator) if separator else list(text)
    frame.charge(len(parts))
    if 0 < limit < len(parts):
        return [*parts[: limit - 1], separator.join(parts[limit - 1 :])]
    return list(parts)


def _substring(frame: Frame, text: Any, start: Any, end: Any = None) -> str:
    _texts(frame, text)
    end = len(text) if end is None else end
    _numbers(start, end)
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise EvaluationError(f"index out of range: {end}")
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return str(text[start:end])


def _trim(frame: Frame, text: Any) -> str:
    _texts(frame, text)
    return str(text.strip())


def _lower(frame: Frame, text: Any) -> str:
    _texts(frame, text)
    return str(text.translate(_LOWER))


def _upper(frame: Frame, text: Any) -> str:
    _texts(frame, text)
    return str(text.translate(_UPPER))


def _join(frame: Frame, items: Any, separator: Any = "") -> str:
    if not isinstance(items, list):
        raise no_such_overload()
    frame.charge(len(items))
    _texts(frame, separator, *items)
    frame.charge(pieces(len(items) * len(separator)))
    return str(separator.join(items))


def _format(frame: Frame, text: Any, args: Any) -> str:
    _texts(frame, text)
    if not isinstance(args, list):
        raise no_such_overload()
    left = list(args)

    def replaced(match: re.Match[str]) -> str:
        digits, verb = match[1], match[2]
        if verb == "%":
            return "%"
        if not left:
            raise EvaluationError(f"index {len(args)} out of range")
        value = left.pop(0)
        if verb == "s":
            found = _shown(frame, value)
        elif verb == "d" and isinstance(value, int) and not isinstance(value, bool):
            found = str(int(value))
        elif verb == "f" and isinstance(value, int | float):
            found = f"{value:.{min(int(digits or 6), 100)}f}"
        else:
            raise EvaluationError(f'could not parse formatting clause: "%{verb}"')
        frame.charge(pieces(len(found)))
        return found

    return _VERB.sub(replaced, text)


def _shown(frame: Frame, value: Any) -> str:
    frame.charge(1)
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(_quoted(frame, item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = sorted((_quoted(frame, key), _quoted(frame, item)) for key, item in value.items())
        return f"{{{', '.join(f'{key}: {item}' for key, item in pairs)}}}"
    text = to_string(frame, value)
    frame.charge(pieces(len(text)))
    return text


def _quoted(frame: Frame, value: Any) -> str:
    if type(value) is not str:
        return _shown(frame, value)
    frame.charge(1 + pieces(len(value)))  # before there is a copy
    return json.dumps(value, ensure_ascii=False)


TEXT_FUNCTIONS: dict[str, Function] = {
    "matches": Function(_matches, BOOL, 2, 2, is_method=True, is_free=True),
    "contains": method(_contains, BOOL, 2),
    "startsWith": method(_starts, BOOL, 2),
    "endsWith": method(_ends, BOOL, 2),
    "charAt": method(_char_at, STRING, 2),
    "indexOf": method(_index_of, INT, 2, 3),
    "lastIndexOf": method(_last_index_of, INT, 2, 3),
    "replace": method(_replace, STRING, 3, 4),
    "split": method(_split, LIST, 2, 3),
    "substring": method(_substring, STRING, 2, 3),
    "trim": method(_trim, STRING, 1),
    "lowerAscii": method(_lower, STRING, 1),
    "upperAscii": method(_upper, STRING, 1),
    "join": method(_join, STRING, 1, 2),
    "format": method(_format, STRING, 2),
}
