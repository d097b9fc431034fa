"""Reads YAML into plain data, with line and column of every value, so that errors can name them.

A file may come from anywhere, so its size, depth and number of values are limited (aliases count
each time they are used). The result contains only maps, lists, text, numbers, booleans and null.
JSON is YAML here, but for tabs between its tokens, which YAML forbids.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import yaml

from gpupool.contract.yaml_lines import EditorLines
from kubeclient.yaml_text import syntax_words

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_VALUES = 100_000

_OCTAL = re.compile(r"[-+]?0o[0-7]+", re.ASCII)

Path: TypeAlias = tuple[str | int, ...]


class _YamlMark(Protocol):
    """The attributes that the marks of the C parser and of the Python parser share."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in the text; both numbers count from 1, as in editors."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, in which field, and what to do about it."""

    text: str
    path: Path = ()
    mark: Mark | None = None

    def line(self, source: str) -> str:
        place = f"{source}:{self.mark.line}:{self.mark.column}" if self.mark else source
        subject = dotted(self.path)
        return f"{place}: {subject}: {self.text}" if subject else f"{place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Document:
    data: Any
    values: Mapping[Path, Mark] = field(default_factory=dict)
    keys: Mapping[Path, Mark] = field(default_factory=dict)

    def problem(self, text: str, *path: str | int) -> Problem:
        """A problem of the value at `path`, or of the nearest existing value that contains it."""
        for length in range(len(path), -1, -1):
            mark = self.values.get(path[:length])
            if mark is not None:
                return Problem(text, path, mark)
        return Problem(text, path)

    def key_problem(self, text: str, *path: str | int) -> Problem:
        """A problem of the name of the field at `path`."""
        mark = self.keys.get(path)
        return Problem(text, path, mark) if mark else self.problem(text, *path)


def dotted(path: Path) -> str:
    """pools[2].labels["a.b/c"], as kubectl writes paths."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.replace("-", "").replace("_", "").isalnum():
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def read_document(text: str) -> Document | tuple[Problem, ...]:
    """The only document of a file; an empty file is an empty document."""
    found = read_documents(text)
    if isinstance(found, tuple):
        return found
    if len(found) > 1:
        return (
            found[1].problem(
                "wanted one document, found a second one; put it in a file of its own"
            ),
        )
    return found[0] if found else Document({}, {(): Mark(1, 1)})


def read_documents(
    text: str, most_bytes: int = MAX_BYTES, most_values: int = MAX_VALUES
) -> list[Document] | tuple[Problem, ...]:
    """All documents of a file, without those that are empty."""
    if len(text.encode(errors="replace")) > most_bytes:
        return (Problem(f"wanted at most {most_bytes >> 20} MiB, found a larger file"),)
    lines = EditorLines(text)
    try:
        _check_depth(text)
        budget = _Budget(most_values)
        readers = []
        for root in yaml.compose_all(text, Loader=yaml.CSafeLoader):
            readers.append(_Reader(budget, lines))
            readers[-1].read(root)
    except yaml.YAMLError as error:
        words, place = syntax_words(error, text)
        return (Problem(words, mark=Mark(*lines.place(*place)) if place else None),)
    except _TooMuch as error:
        return (Problem(str(error), mark=_mark(error.mark, lines)),)
    problems = tuple(problem for reader in readers for problem in reader.problems)
    return problems or [each.document for each in readers if each.document.data is not None]


class _TooMuch(Exception):
    def __init__(self, text: str, mark: _YamlMark | None) -> None:
        super().__init__(text)
        self.mark = mark


def _mark(mark: _YamlMark | None, lines: EditorLines) -> Mark:
    return Mark(*lines.place(mark.line + 1, mark.column + 1)) if mark else Mark(1, 1)


def _check_depth(text: str) -> None:
    """Runs before `yaml.compose`, which recurses in C: a million brackets would crash it."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _TooMuch(f"nested deeper than {MAX_DEPTH} levels", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Budget:
    """Of values, for all documents of a file."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def spend(self, mark: _YamlMark | None) -> None:
        self._left -= 1
        if self._left < 0:
            words = "an alias (*) counts as all that it stands for"
            raise _TooMuch(f"wanted at most {self._most} values, found more; {words}", mark)


def _is_sendable(value: Any) -> bool:
    """JSON has no NaN and no infinity, nobody reads whole numbers of more than 64 bits, and no
    field wants one: the text says more."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return not isinstance(value, float) or math.isfinite(value)


def _octal(node: yaml.ScalarNode) -> str | int:
    """0o644 is a number for YAML 1.2; the parser knows 0644 only."""
    is_number = not node.style and _OCTAL.fullmatch(node.value)
    return int(node.value.replace("0o", ""), 8) if is_number else str(node.value)


class _Reader:
    """Turns composed nodes into data, and notes the position of each value."""

    def __init__(self, budget: _Budget, lines: EditorLines) -> None:
        self._budget = budget
        self._lines = lines
        self._depth = 0  # of values and merges inside of each other
        self._data: Any = None
        self.values: dict[Path, Mark] = {}
        self.keys: dict[Path, Mark] = {}
        self.problems: list[Problem] = []
        yaml_rules = yaml.constructor.SafeConstructor()
        self.scalars: dict[str, Callable[[yaml.ScalarNode], Any]] = {
            "int": yaml_rules.construct_yaml_int,
            "float": yaml_rules.construct_yaml_float,
            "bool": yaml_rules.construct_yaml_bool,
            "null": yaml_rules.construct_yaml_null,
        }

    def read(self, root: yaml.Node) -> None:
        self._data = self._value(root, ())

    @property
    def document(self) -> Document:
        return Document(self._data, self.values, self.keys)

    def _value(self, node: yaml.Node, path: Path) -> Any:
        # Each use of an alias is expanded: a few nested lines can mean billions of values.
        self._budget.spend(node.start_mark)
        # Not the length of the path: a map may merge itself, which makes no path longer.
        if self._depth > MAX_DEPTH:
            raise _TooMuch(f"nested deeper than {MAX_DEPTH} levels", node.start_mark)
        self.values[path] = _mark(node.start_mark, self._lines)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._depth += 1
        if isinstance(node, yaml.MappingNode):
            data: Any = self._mapping(node, path)
        else:
            data = [self._value(item, (*path, i)) for i, item in enumerate(node.value)]
        self._depth -= 1
        return data

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":  # <<: *defaults
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                continue
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(
                    Problem(
                        "wanted text as the name of a field, found a list or a map",
                        path,
                        _mark(key.start_mark, self._lines),
                    )
                )
                continue
            here = (*path, key.value)
            if key.value in data:
                first = self.keys[here].line
                self.problems.append(
                    Problem(
                        f"given twice, first in line {first}; keep one of them",
                        here,
                        _mark(key.start_mark, self._lines),
                    )
                )
                continue
            self.keys[here] = _mark(key.start_mark, self._lines)
            data[key.value] = self._value(value, here)
        for each in merged:  # the map's own fields come first, then those of earlier merges
            found = self._value(each, path)
            if isinstance(found, dict):
                data = found | data
            else:
                self.problems.append(
                    Problem(
                        "wanted a map after <<, found none",
                        path,
                        _mark(each.start_mark, self._lines),
                    )
                )
        return data

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        """As kubectl and the API server read it."""
        # For YAML 1.1, and for nobody else, 12:30 is a number with the base 60.
        if ":" in node.value:
            return node.value
        construct = self.scalars.get(node.tag.removeprefix("tag:yaml.org,2002:"))
        try:
            # Dates and other types of YAML stay text.
            value = construct(node) if construct else _octal(node)
            return value if _is_sendable(value) else node.value
        # More digits than Python converts to a number, or a tag that its value denies: !!int "".
        except (ValueError, LookupError):
            return node.value
