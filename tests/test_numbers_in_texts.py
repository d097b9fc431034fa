"""int() takes more than Kubernetes does (other scripts, spaces, underscores), and raises an error
of its own from 4,300 digits on, which a handler that checked the digits does not expect. So what
may be a text that others write is bounded in length before it becomes a number: by
`kubeclient.bounded_numbers`, a cut, a comparison of its length, or the pattern that it fits.

What cannot be seen in the source is listed here, with the reason why it is right."""

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SOURCE = Path(__file__).parent.parent / "src"
# What the owner of the machine types, and what calculates: no text of others gets there.
_OWN = ("gpupool/cli", "gpupool/replay", "gpupool/engine", "gpupool/hardware/simdriver")
_MAKERS = ("int", "Decimal", "Fraction")  # float() reads a text of any length, in linear time
_NUMBERS = ("int", "float", "bool")
_CALCULATIONS = {"len", "max", "min", "sum", "any", "bool", "round", "repr", "next"}
_METHODS = {"timestamp", "sum", "max", "min", "find", "rfind", "clock", "time"}
_OBJECTS = {"spec", "status", "port", "declared", "schema", "revision"}
_MOST_CHARS = 200  # a number of so many digits is read in no time
_parser: Any = importlib.import_module("re._parser")

_NUMBER = "a number already, or a field whose schema wants one"
_KERNEL = "written by the kernel"
_OURS = "written by this program"
_FORM = "parts/form.py has checked it: up to nine digits"
_BOUNDED = "its length or its pattern has been checked where it came from"
_CAUGHT = "whoever calls it expects a ValueError"
# By file; or by file and call, where a file has others as well.
REVIEWED = {
    "gpupool/admission/asked.py": _NUMBER,
    "gpupool/admission/foreign/kai.py": _BOUNDED,
    "gpupool/agent/missing_cards.py": _KERNEL,
    "gpupool/agent/xid_policy.py": "of a file of the owner, or ours",
    "gpupool/console/gpu_views.py": _NUMBER,
    "gpupool/console/pages/cluster_form.py": _FORM,
    "gpupool/console/pages/instances.py": _FORM,
    "gpupool/console/pages/pool_actions.py": _FORM,
    "gpupool/console/pages/pool_form.py": _FORM,
    "gpupool/console/pages/resize.py": _FORM,
    "gpupool/console/pages/workload_actions.py": _FORM,
    "gpupool/console/parts/port_lines.py: int(target)": _BOUNDED,
    "gpupool/console/render.py": _NUMBER,
    "gpupool/console/rows/workloads.py": _NUMBER,
    "gpupool/console/workload_manifest.py": _FORM,
    "gpupool/doctor/checks.py": "of the version that the owner's cluster says it has",
    "gpupool/hardware/cdi_files.py": _KERNEL,
    "gpupool/history/pages.py": _CAUGHT,
    "gpupool/local/home_lock.py": "of at most 32 bytes",
    "gpupool/local/programs/gpu_memory.py": "of its own environment, which ends it at most",
    "gpupool/local/programs/jupyter.py": "of its own environment, which ends it at most",
    "gpupool/scheduler/inspection.py": _NUMBER,
    "gpupool/scheduler/next_step.py": _NUMBER,
    "gpupool/scheduler/what_if.py": _NUMBER,
    "kubeclient/mirror.py": "of the API server itself",
    "kubeclient/port_forward.py": _BOUNDED,
    "kubeclient/quantity.py: int(found[1])": _BOUNDED,
    "localkube/apiserver/cel/conversions.py": _BOUNDED,
    "localkube/apiserver/cel/operators.py": _NUMBER,
    "localkube/apiserver/cel/patterns.py": _BOUNDED,
    "localkube/apiserver/cel/texts.py": _BOUNDED,
    "localkube/apiserver/cel/times.py": _CAUGHT,
    "localkube/apiserver/cel/values.py": _NUMBER,
    "localkube/apiserver/decode/protobuf.py": _NUMBER,
    "localkube/apiserver/discovery.py": "of a version's name, which has at most 63 characters",
    "localkube/apiserver/http/reader.py": "llhttp has checked that it has at most 64 bits",
    "localkube/apiserver/schema/check.py": _NUMBER,
    "localkube/apiserver/schema/crd_costs.py": _NUMBER,
    "localkube/apiserver/schema/times.py": _BOUNDED,
    "localkube/apiserver/security/audit.py": _NUMBER,
    "localkube/apiserver/store/head.py": _OURS,
    "localkube/apiserver/subresources/log_options.py": _BOUNDED,
    "localkube/apiserver/tables/custom.py": _NUMBER,
    "localkube/apiserver/tables/jsonpath.py": _BOUNDED,
    "localkube/apiserver/validation/addresses.py: int(bits)": _BOUNDED,
    "localkube/apiserver/validation/apps.py: int(value)": _BOUNDED,
    "localkube/apiserver/validation/networking.py: int(bits)": _BOUNDED,
    "localkube/apiserver/validation/pod_annotations.py: int(text)": _BOUNDED,
    "localkube/apiserver/verbs/options.py: int(given)": _NUMBER,
    "localkube/apiserver/verbs/read.py: int(options.resource_version)": _BOUNDED,
    "localkube/controllers/job_indexes.py": _BOUNDED,
    "localkube/controllers/stateful_set_pods.py": "of a pod's name, at most 253 characters",
    "localkube/cron.py": _BOUNDED,
    "localkube/data_directory.py": "of at most 32 bytes",
    "localkube/kubelet/container_files.py": _OURS,
    "localkube/kubelet/hosted.py": _NUMBER,
    "localkube/kubelet/launcher.py": _OURS,
    "localkube/kubelet/listening.py": _KERNEL,
    "localkube/kubelet/node.py": _NUMBER,
    "localkube/kubelet/notices.py": _NUMBER,
    "localkube/kubelet/pods.py": "of the API server itself",
    "localkube/kubelet/process_table.py": _KERNEL,
    "localkube/kubelet/programs/run_module.py": _KERNEL,
    "localkube/kubelet/runtime.py": _NUMBER,
    "localkube/kubelet/runtime_process.py": _NUMBER,
    "localkube/nodes.py": _NUMBER,
}


Patterns = Callable[[], dict[str, re.Pattern[Any]]]  # of a module, by name


class Place(NamedTuple):
    call: ast.Call
    function: ast.AST | None

    @property
    def text(self) -> str:
        return ast.unparse(self.call)


def _places(node: ast.AST, function: ast.AST | None = None) -> Iterator[Place]:
    for inner in ast.iter_child_nodes(node):
        is_call = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name)
        if is_call and inner.func.id in _MAKERS and inner.args:  # type: ignore[attr-defined]
            yield Place(inner, function)  # type: ignore[arg-type]
        is_function = isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _places(inner, inner if is_function else function)


def _is_bounded(place: Place, patterns: Patterns) -> bool:
    given = place.call.args[0]
    return (
        len(place.call.args) > 1  # with a base of 8 or 16 there is no limit, and time is linear
        or _is_number(given, place.function)
        or _is_field(given)
        or _is_cut(given)
        or _is_measured(given, place.function)
        or _fits_a_short_pattern(given, place.function, patterns)
    )


def _is_number(given: ast.expr, function: ast.AST | None) -> bool:
    match given:
        case ast.Constant() | ast.BinOp() | ast.Compare() | ast.UnaryOp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _CALCULATIONS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _METHODS
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.endswith("_s") or name.isupper() or name in _declared(function)
        case _:
            pass
    return False


def _declared(function: ast.AST | None) -> set[str]:
    """Names of arguments that are numbers."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    args = [*function.args.args, *function.args.kwonlyargs]
    return {a.arg for a in args if a.annotation and ast.unparse(a.annotation) in _NUMBERS}


def _is_field(given: ast.expr) -> bool:
    """`spec["count"]`, `spec.get("count") or 0`: of an object, whose schema has been checked."""
    match given:
        case ast.BoolOp(values=[*parts]):
            return all(_is_field(part) or isinstance(part, ast.Constant) for part in parts)
        case ast.Subscript(value=value, slice=ast.Constant(value=str())):
            return not isinstance(value, ast.Name) or value.id in _OBJECTS
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str()), *_]):
            return "headers" not in ast.unparse(given) and "given" not in ast.unparse(given)
        case _:
            pass
    return False


def _is_cut(given: ast.expr) -> bool:
    if isinstance(given, ast.BoolOp):
        given = given.values[0]
    return isinstance(given, ast.Subscript) and (
        isinstance(given.slice, ast.Slice) and given.slice.upper is not None
    )


def _root(given: ast.AST) -> str:
    """The name that it begins with."""
    match given:
        case ast.Name(id=name):
            return name
        case ast.BoolOp(values=[first, *_]):
            return _root(first)
        case ast.Call(func=ast.Attribute(value=value)):
            return _root(value)
        case ast.Subscript(value=value) | ast.Attribute(value=value):
            return _root(value)
        case _:
            pass
    return ""


def _is_measured(given: ast.expr, function: ast.AST | None) -> bool:
    """Its length is compared somewhere in the function."""
    root = _root(given)
    for each in ast.walk(function) if function and root else ():
        if isinstance(each, ast.Compare):
            for part in ast.walk(each):
                match part:
                    case ast.Call(func=ast.Name(id="len"), args=[measured]):
                        if _root(measured) == root:
                            return True
                    case _:
                        pass
    return False


def _fits_a_short_pattern(given: ast.expr, function: ast.AST | None, patterns: Patterns) -> bool:
    """`found[1]`, of `found = _PATTERN.fullmatch(text)`, if no text of that group is long."""
    match given:
        case ast.BoolOp(values=[first, ast.Constant()]):
            return _fits_a_short_pattern(first, function, patterns)
        case ast.Subscript(
            value=ast.Name(id=found), slice=ast.Constant(value=str() | int() as group)
        ):
            known = patterns()
            names = [name for name in _pattern_names(found, function) if name in known]
            widths = [_width(known[name], group) for name in names]
            return bool(widths) and max(widths) <= _MOST_CHARS
        case _:
            pass
    return False


def _pattern_names(found: str, function: ast.AST | None) -> Iterator[str]:
    for each in ast.walk(function) if function else ():
        match each:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ) if name == found:
                yield from (part.id for part in ast.walk(value) if isinstance(part, ast.Name))
            case _:
                pass


def _width(pattern: re.Pattern[Any], group: str | int) -> int:
    number = pattern.groupindex[group] if isinstance(group, str) else group
    text = pattern.pattern
    parsed = _parser.parse(text if isinstance(text, str) else text.decode(), pattern.flags)
    return max((part.getwidth()[1] for part in _groups(parsed, number)), default=_MOST_CHARS + 1)


def _groups(parts: Any, number: int) -> Iterator[Any]:
    for kind, value in parts:
        if str(kind) == "SUBPATTERN" and value[0] == number:
            yield value[3]
        for inner in value if isinstance(value, tuple | list) else (value,):
            for each in inner if isinstance(inner, list) else (inner,):
                if isinstance(each, _parser.SubPattern):
                    yield from _groups(each, number)


def _module_patterns(path: Path) -> dict[str, re.Pattern[Any]]:
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    try:
        loaded = importlib.import_module(module)
    except ImportError:  # needs what only some machines have
        return {}
    found = {name: getattr(each, "__self__", each) for name, each in vars(loaded).items()}
    return {name: each for name, each in found.items() if isinstance(each, re.Pattern)}


@cache
def _unbounded() -> dict[str, None]:
    found: dict[str, None] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(_OWN) or path.name == "__main__.py":
            continue
        patterns = cache(partial(_module_patterns, path))
        for place in _places(ast.parse(path.read_text(encoding="utf-8"))):
            if not _is_bounded(place, patterns):
                found[f"{name}: {place.text}"] = None
    return found


def test_every_text_that_becomes_a_number_is_bounded() -> None:
    wrong = [place for place in _unbounded() if not {place, _file(place)} & set(REVIEWED)]
    assert wrong == []


def test_what_was_reviewed_is_still_there() -> None:
    there = _unbounded()
    assert set(REVIEWED) <= {*there, *map(_file, there)}


def _file(place: str) -> str:
    return place.partition(":")[0]


@pytest.mark.parametrize(
    ("source", "is_right"),
    [
        ("def f(text): return int(text) if text.isdigit() else 0", False),
        ("def f(text): return int(text) if len(text) < 9 else 0", True),
        ("def f(text): return int(text[:9])", True),
        ("def f(text): return int(annotations.get(NAME))", False),
        ("def f(text):\n found = LONG.match(text)\n return int(found[1])", False),
        ("def f(text):\n found = SHORT.match(text)\n return int(found[1])", True),
        ("def f(spec): return int(spec.get('count') or 0)", True),
        ("def f(count: int): return int(count)", True),
    ],
)
def test_an_unbounded_text_would_be_found(source: str, is_right: bool) -> None:
    patterns = {"LONG": re.compile("a([0-9]+)"), "SHORT": re.compile("a([0-9]{1,9})")}
    (place,) = _places(ast.parse(source))
    assert _is_bounded(place, lambda: patterns) is is_right
