"""docs/simulated-gpus.md compares every simulated function with the real driver."""

import re
from fnmatch import fnmatchcase

import pytest

from native import build
from tests.native.test_null_arguments import names

PAGE = build.HERE.parent / "docs" / "simulated-gpus.md"
EXPORTED = {
    "cuda": r"ENTRY\(\w+, \d+, \d, (\w+)\)",
    "nvml": r"ENTRY\((\w+)\)",
}


def without_endings(name: str) -> str:
    """Versions of a function, and its form for other default streams, behave alike."""
    return re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", name)


def written(library: str) -> set[str]:
    """The functions that a source file defines. A definition begins with the name of a macro, and a
    macro that defines several functions makes their names of parts."""
    exported = {*names(library, EXPORTED[library]), "nvmlInternalGetExportTable", "nvmlShutdown"}
    sources = (build.HERE / "simdriver" / library).glob("*.c")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    defined = re.findall(r"^ *[A-Z_0-9]+\(((?:cu|nvml)[\w#]+)", text, re.MULTILINE)
    wanted = re.compile("|".join(re.sub(r"##\w+##", r"\\w+", name) for name in defined))
    return {without_endings(name) for name in exported if wanted.fullmatch(name)}


def patterns(library: str) -> list[str]:
    """Of the first column of the library's table."""
    page = PAGE.read_text(encoding="utf-8")
    table = page.partition(f"### {library.upper()}\n")[2].partition("\n#")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [pattern for row in rows for pattern in re.findall(r"`([\w*]+)`", row)]


@pytest.mark.parametrize("library", EXPORTED)
def test_every_simulated_function_is_compared_with_the_real_one(library: str) -> None:
    listed = patterns(library)
    assert len(listed) == len(set(listed))
    found = {
        name: [each for each in listed if fnmatchcase(name, each)]
        for name in written(library) - set(listed)
    }
    assert {name: rows for name, rows in found.items() if len(rows) != 1} == {}


@pytest.mark.parametrize("library", EXPORTED)
def test_every_function_that_is_compared_is_simulated(library: str) -> None:
    simulated = written(library)
    assert [
        each for each in patterns(library) if not any(fnmatchcase(name, each) for name in simulated)
    ] == []
