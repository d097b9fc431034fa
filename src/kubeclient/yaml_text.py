"""YAML of people: limits for what its parser would follow anywhere, and words for its errors.

The parser recurses in C: a hundred thousand brackets end the process. And a few lines with aliases
of aliases mean billions of values.
"""

from typing import NamedTuple

import yaml

_MOST_LEVELS = 32
_MOST_VALUES = 100_000


class BadYaml(ValueError):
    """The text says where, and what is wrong."""


class Place(NamedTuple):
    line: int
    column: int


def load_yaml(raw: bytes) -> object:
    """The only document of the text. Raises BadYaml, in one line."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadYaml(not_utf8(error)) from error
    try:
        _check_size(text)
        return yaml.load(text, yaml.CSafeLoader)
    except BadYaml:
        raise
    except yaml.YAMLError as error:
        words, place = syntax_words(error, text)
        where = f"line {place.line}, column {place.column}: " if place else ""
        raise BadYaml(f"{where}{words}") from error
    except ValueError as error:  # !!int "x", or more digits than Python reads
        raise BadYaml(f"a value is not of the type that it claims: {error}") from error


def not_utf8(error: UnicodeDecodeError) -> str:
    found = f"found other bytes (0x{error.object[error.start]:02x} at byte {error.start})"
    return f"wanted text in UTF-8, {found}; is it the right file?"


def syntax_words(error: yaml.YAMLError, text: str) -> tuple[str, Place | None]:
    """What is wrong, and where."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:  # control characters: the parser gives no line, but their number
        character = getattr(error, "character", None)
        if not isinstance(character, int):
            return f"not valid YAML: {str(error).splitlines()[0]}", None
        before = text[: max(text.find(chr(character)), 0)]
        place = Place(before.count("\n") + 1, len(before) - before.rfind("\n"))
        words = f"a control character (U+{character:04X}); remove it, or is this another file?"
        return f"not valid YAML: {words}", place
    place = Place(mark.line + 1, mark.column + 1)
    line = text.splitlines()[mark.line] if mark.line < len(text.splitlines()) else ""
    if line[: mark.column + 1].strip(" ").startswith("\t"):
        return "not valid YAML: indented by a tab; wanted spaces", place
    problem = getattr(error, "problem", "") or ""
    if problem == "found undefined alias":
        return "not valid YAML: an alias (*) without the anchor (&) that it names", place
    parts = (getattr(error, "context", "") or "", problem)
    return f"not valid YAML: {', '.join(part for part in parts if part)}", place


def _check_size(text: str) -> None:
    """Counts each alias as all that it stands for."""
    count = _Count()
    for event in yaml.parse(text, yaml.CSafeLoader):
        problem = count.add(event)
        if problem:
            raise BadYaml(f"line {event.start_mark.line + 1}: {problem}")


class _Count:
    """The values and levels of a text, event by event."""

    def __init__(self) -> None:
        self._values = 0
        self._sizes: dict[str | None, int] = {}  # of what has an anchor
        self._opened: list[tuple[str | None, int]] = []  # anchor, and values before it

    def add(self, event: yaml.Event) -> str:
        """What is too much; empty: nothing is."""
        match event:
            case yaml.AliasEvent():
                if any(anchor == event.anchor for anchor, _ in self._opened):
                    return f"*{event.anchor} contains itself"
                self._values += self._sizes.get(event.anchor, 1)
            case yaml.ScalarEvent():
                self._values += 1
                self._sizes[event.anchor] = 1
            case yaml.CollectionStartEvent():
                self._opened.append((event.anchor, self._values))
                self._values += 1
            case yaml.CollectionEndEvent():
                anchor, before = self._opened.pop()
                self._sizes[anchor] = self._values - before
            case _:  # begin or end of a document
                pass
        if len(self._opened) > _MOST_LEVELS:
            return f"nested deeper than {_MOST_LEVELS} levels"
        if self._values > _MOST_VALUES:
            words = "an alias (*) counts as all that it stands for"
            return f"wanted at most {_MOST_VALUES} values, found more; {words}"
        return ""
