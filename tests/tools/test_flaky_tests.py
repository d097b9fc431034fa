"""Which failed tests .ci/run tries a second time: those on the list, if all are on it."""

import ast
import datetime
import json
from pathlib import Path

import pytest

from tools import flaky_tests
from tools.flaky_tests import LIST, ROOT, BadList, Flaky, listed, main, unlisted

LINE = "tests/a.py::test_one | 2026-11-16 | two clocks | compared"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(flaky_tests, "LIST", tmp_path / "list")
    monkeypatch.setattr(flaky_tests, "FAILED", tmp_path / "failed")
    (tmp_path / "list").write_text(f"# a comment\n\n{LINE}\n")
    return tmp_path


def fail(files: Path, *tests: str) -> None:
    (files / "failed").write_text(json.dumps(dict.fromkeys(tests, True)))


def test_an_entry_has_a_test_a_date_and_a_cause() -> None:
    when = datetime.date(2026, 11, 16)
    assert listed(LINE) == [Flaky("tests/a.py::test_one", when, "two clocks | compared")]


@pytest.mark.parametrize("line", ["tests/a.py::test_one", "a | 2026-11-16 |", "a | soon | why"])
def test_an_entry_without_a_date_or_a_cause_is_refused(line: str) -> None:
    with pytest.raises(BadList):
        listed(line)


def test_an_entry_counts_for_a_test_with_all_its_parameters() -> None:
    failed = ["tests/a.py::test_one[x]", "tests/a.py::test_one_more"]
    assert unlisted(failed, listed(LINE)) == ["tests/a.py::test_one_more"]


def test_listed_tests_are_printed_for_a_second_try(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(files, "tests/a.py::test_one[x]", "tests/a.py::test_one[y]")
    assert main() == 0
    assert capsys.readouterr().out == "tests/a.py::test_one[x]\ntests/a.py::test_one[y]\n"


def test_one_test_that_is_not_listed_is_enough_to_fail(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(files, "tests/a.py::test_one[x]", "tests/a.py::test_two")
    assert main() == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "Failed, and not in .ci/flaky-tests: tests/a.py::test_two\n"


def test_a_failure_without_a_failed_test_is_not_tried_again(files: Path) -> None:
    assert main() == 1
    fail(files)
    assert main() == 1


def test_a_list_that_cannot_be_read_fails(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "list").write_text("tests/a.py::test_one\n")
    fail(files, "tests/a.py::test_one")
    assert main() == 1
    assert "wanted" in capsys.readouterr().err


def test_every_test_on_the_list_exists() -> None:
    for each in listed(LIST.read_text(encoding="utf-8")):
        path, _, name = each.test.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = ast.FunctionDef | ast.AsyncFunctionDef
        assert name.split("::")[-1] in {n.name for n in ast.walk(tree) if isinstance(n, functions)}
