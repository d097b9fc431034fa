"""No pattern takes more than linear time, whatever text it meets: while Python searches, no other
thread runs, and a tenant's text of a few kilobytes could stop a server for hours.

Each pattern of the packages is tried with texts that are made for it: what it looks for, and what
it repeats, again and again, with an end that does not fit. Patterns are found in the modules, and
in the source wherever `re` is called: in functions, tables and classes."""

import ast
import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import gpupool
import kubeclient
import localkube
from gpupool.console import said
from localkube.apiserver.schema import formats, times

_LENGTHS = (*range(12, 30, 2), 40, 60, 90, 140, 210, 320, 480, 720, 1100, 2500, 6000, 16_000)
_SLOWEST = 12  # are tried with longer texts
_TOO_LONG_S = 0.15  # linear time is less than a millisecond
_parser: Any = importlib.import_module("re._parser")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def _modules() -> Iterator[ModuleType]:
    for package in (gpupool, kubeclient, localkube):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                try:
                    yield importlib.import_module(found.name)
                except ImportError:  # needs what only some machines have
                    continue


def _patterns() -> dict[str, tuple[re.Pattern[Any], str]]:
    """By module and name, with how the module uses them."""
    found: dict[str, tuple[re.Pattern[Any], str]] = {}
    for module in _modules():
        source = ""
        for name, value in vars(module).items():
            pattern = getattr(value, "__self__", value)
            if isinstance(pattern, re.Pattern):
                source = source or inspect.getsource(module)
                if re.search(rf"^{name}\b.*re\.compile", source, re.MULTILINE):
                    found[f"{module.__name__}.{name}"] = (pattern, source)
    return found


_PATTERNS = _patterns()
_SEARCHES = ("search", "sub", "subn", "split", "findall", "finditer")
# Made of what is known only when they are called.
_MADE_LATER = {
    "gpupool.cli.manifests": "of a name that has been checked, with a bounded part",
    "gpupool.console.said": "of our own texts: its table, below",
    "gpupool.local.home": "CLUSTER_NAME of a module that is loaded late, which is bounded",
    "localkube.apiserver.schema.formats": "of its table, below",
    "localkube.apiserver.schema.times": "of its table, below",
}


def _written() -> tuple[dict[str, tuple[re.Pattern[Any], list[str]]], set[str]]:
    """Patterns in the source, with the ways in which they are used; modules with others."""
    found: dict[str, tuple[re.Pattern[Any], list[str]]] = {}
    others = set()
    for module in _modules():
        for node in ast.walk(ast.parse(inspect.getsource(module) or "")):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=way), args=[text, *rest]
                ) if way not in ("escape", "purge"):
                    try:
                        pattern = _evaluated(text, rest if way == "compile" else [], module)
                    except NameError:
                        others.add(module.__name__)
                        continue
                    ways = ["fullmatch", "match", "search"] if way == "compile" else [way]
                    if way in _SEARCHES:
                        ways = ["search"]
                    found[f"{module.__name__}: {pattern.pattern!r} {way}"] = pattern, ways
    return found, others


def _evaluated(text: ast.expr, flags: list[ast.expr], module: ModuleType) -> re.Pattern[Any]:
    made = [ast.unparse(each) for each in (text, *flags)]
    pattern: re.Pattern[Any] = eval(f"re.compile({', '.join(made)})", {**vars(module), "re": re})
    return pattern


_WRITTEN, _OTHERS = _written()
_IN_FUNCTIONS = {
    name: each
    for name, each in _WRITTEN.items()
    if each[0] not in [pattern for pattern, _ in _PATTERNS.values()]
}


def _example(parts: Any) -> str:
    """A short text that fits."""
    made = []
    for kind, value in parts:
        match str(kind):
            case "LITERAL":
                made.append(chr(value))
            case "NOT_LITERAL":
                made.append("a" if value != ord("a") else "b")
            case "ANY":
                made.append("a")
            case "IN":
                made.append(_one_of(value))
            case "BRANCH":
                made.append(_example(value[1][0]))
            case "SUBPATTERN":
                made.append(_example(value[3]))
            case "ATOMIC_GROUP":
                made.append(_example(value))
            case repeat if repeat in _REPEATS:
                made.append(_example(value[2]) * max(value[0], 1))
            case _:
                pass
    return "".join(made)


def _one_of(members: Any) -> str:
    excluded = {value for kind, value in members if str(kind) == "LITERAL"}
    if str(members[0][0]) == "NEGATE":
        return next(char for char in "a0 -.,\x01" if ord(char) not in excluded)
    kind, value = members[0]
    if str(kind) == "LITERAL":
        return chr(value)
    if str(kind) == "RANGE":
        return chr(value[0])
    return {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "0"}.get(str(value), "a")


def _pumps(parts: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What to begin with, and what to repeat."""
    literals = ""
    for number, (kind, value) in enumerate(parts):
        start = before + _example(parts[:number])
        name = str(kind)
        if name == "LITERAL":
            literals += chr(value)
            yield "", literals
            continue
        literals = ""
        inner: list[Any] = []
        if name in _REPEATS:
            inner = [value[2]]
            yield start, _example(value[2])
        elif name == "SUBPATTERN":
            inner = [value[3]]
        elif name == "ATOMIC_GROUP":
            inner = [value]
        elif name == "BRANCH":
            inner = list(value[1])
        for each in inner:
            yield from _pumps(list(each), start)


def _repeated(pattern: re.Pattern[Any]) -> list[tuple[str, str]]:
    source = pattern.pattern
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    pumps = list(_pumps(list(_parser.parse(text, pattern.flags))))
    starts = dict.fromkeys(start for start, _ in pumps)
    words = dict.fromkeys(word for _, word in pumps if word)
    return [(start, word) for start in starts for word in words]


def _text(pattern: re.Pattern[Any], start: str, word: str, length: int) -> Any:
    made = start + word * (length // len(word)) + "\0"
    return made.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else made


def _took(pattern: re.Pattern[Any], ways: list[str], text: Any) -> float:
    begin = time.thread_time()
    for way in ways:
        if way == "search":
            pattern.sub(text[:0], text)
        else:
            getattr(pattern, way)(text)
    return time.thread_time() - begin


def _slow(pattern: re.Pattern[Any], ways: list[str]) -> str:
    tried = _repeated(pattern)
    for length in _LENGTHS:
        took: dict[tuple[str, str], float] = {}
        for start, word in tried:
            text = _text(pattern, start, word, length)
            took[start, word] = _took(pattern, ways, text)
            if took[start, word] > _TOO_LONG_S and _took(pattern, ways, text) > _TOO_LONG_S:
                return f"{took[start, word]:.2f} s for {len(text)} characters: {text[:40]!r}..."
        if length > 100:
            tried = sorted(tried, key=lambda each: -took[each])[:_SLOWEST]
    return ""


@pytest.mark.parametrize("name", sorted(_PATTERNS))
def test_a_pattern_takes_linear_time(name: str) -> None:
    pattern, source = _PATTERNS[name]
    short = name.rpartition(".")[2]
    searches = re.search(rf"\b{short}\.(search|sub|subn|split|findall|finditer)\b", source)
    assert not _slow(pattern, ["fullmatch", "match", *(["search"] if searches else [])])


@pytest.mark.parametrize("name", sorted(_IN_FUNCTIONS))
def test_a_pattern_within_a_function_takes_linear_time(name: str) -> None:
    assert not _slow(*_IN_FUNCTIONS[name])


def test_patterns_that_are_made_later_have_been_looked_at() -> None:
    assert set(_MADE_LATER) == _OTHERS


_TABLES = {
    **{name: re.compile(pattern) for name, pattern in formats._PATTERNS.items()},
    **{part: re.compile(part, re.ASCII) for each in times._ELEMENTS.values() for _, part in each},
    **said._PATTERNS,
}


@pytest.mark.parametrize("name", sorted(_TABLES))
def test_a_pattern_of_a_table_takes_linear_time(name: str) -> None:
    assert not _slow(_TABLES[name], ["fullmatch", "match"])


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        ("(a*)*b", "match"),
        (r"0*([0-9]*)x", "match"),
        (r"\$\(([^)]*)\)", "search"),
        ("(.*x)(.*x)(.*y)", "match"),
    ],
)
def test_a_slow_pattern_would_be_found(pattern: str, way: str) -> None:
    assert _slow(re.compile(pattern), [way])
