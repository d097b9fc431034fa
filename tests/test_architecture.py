"""The rules of size and naming, on the code itself. Who may import whom: .importlinter."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gpupool.contract import names

ROOT = Path(__file__).parent.parent
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
BANNED = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base", "handler"}


@cache
def python_files() -> tuple[Path, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:  # an unpacked release: no git there
        found = (path for part in ("src", "tests", "tools") for path in (ROOT / part).rglob("*.py"))
        return tuple(sorted(found))
    return tuple(ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists())


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_files_are_short() -> None:
    lines = {shown(path): len(path.read_text("utf-8").splitlines()) for path in python_files()}
    assert not {path: count for path, count in lines.items() if count > MAX_FILE_LINES}


def test_functions_are_short() -> None:
    lengths = {
        f"{shown(path)}: {function.name}": length(function)
        for path in python_files()
        for function in functions(path)
    }
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES}


def test_every_module_says_what_is_in_it() -> None:
    silent = [
        shown(path)
        for path in python_files()
        if not shown(path).startswith("tests/")  # a test's name says it
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent


def test_no_file_is_named_after_nothing() -> None:
    assert not [shown(path) for path in python_files() if BANNED & {path.stem, *path.parent.parts}]


def test_nothing_is_left_for_later() -> None:
    mark = re.compile(r"#\s*(?:TODO|FIXME|XXX|HACK)\b")
    assert not [shown(p) for p in python_files() if mark.search(p.read_text(encoding="utf-8"))]


def test_every_name_of_the_contract_is_documented() -> None:
    page = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    values = [value for key, value in vars(names).items() if key.isupper()]
    missing = [text for text in values if isinstance(text, str) and f"`{text}`" not in page]
    assert not missing
