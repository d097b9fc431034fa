"""Paths that cannot be used are reported in one line: the path, what was wanted and found."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.local import kubeconfig_merge
from gpupool.local.home import Home
from localkube import data_directory


def refusal(*arguments: str) -> str:
    result = CliRunner().invoke(gpupool, arguments)
    assert result.exit_code == 1, result.exception
    assert result.output.startswith("Error: ")
    assert "Traceback" not in result.output
    return result.output


@pytest.fixture
def below_a_file(tmp_path: Path) -> Path:
    """A path that nobody can create, not even root."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "x"


@pytest.fixture
def no_entry(home: Home) -> Iterator[None]:
    """Reading any directory is refused, as in a directory of another user."""

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    with pytest.MonkeyPatch.context() as patch:
        for question in ("is_dir", "exists"):
            patch.setattr(Path, question, refuse)
        yield


def test_a_data_directory_that_cannot_be_made(home: Home, below_a_file: Path) -> None:
    said = refusal("up", "--data-dir", str(below_a_file))
    assert f"{below_a_file} cannot be the data directory: wanted" in said
    assert f"({below_a_file.parent})" in said
    assert home.clusters() == []


@pytest.mark.parametrize("command", ["up", "quota set clusters=3"])
def test_a_home_that_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, below_a_file: Path, command: str
) -> None:
    monkeypatch.setenv("GPUPOOL_HOME", str(below_a_file))
    assert f"{below_a_file} cannot be gpupool's home: wanted" in refusal(*command.split())


@pytest.mark.usefixtures("no_entry")
@pytest.mark.parametrize("command", ["clusters", "status", "quota", "down", "up"])
def test_a_home_that_cannot_be_looked_into(command: str) -> None:
    assert "found: Permission denied" in refusal(command)


def test_a_user_without_a_home_directory_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for variable in ("GPUPOOL_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert "say where with GPUPOOL_HOME" in refusal("clusters")


def test_a_kubeconfig_that_cannot_be_changed_is_said_before_anything_is_made(
    home: Home, monkeypatch: pytest.MonkeyPatch, below_a_file: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(below_a_file))
    said = refusal("up", "--port", "0", "--merge-kubeconfig")
    assert f"{below_a_file} cannot be changed: wanted" in said
    assert home.clusters() == []


def test_making_a_data_directory_reports_what_was_found(below_a_file: Path) -> None:
    with pytest.raises(data_directory.NotUsable, match=r"found: .* \(.*\)\. Choose another"):
        data_directory.make_data_directory(below_a_file)


def test_checking_whether_a_merge_would_work_changes_nothing(tmp_path: Path) -> None:
    kubeconfig_merge.verify(tmp_path / "config", "a")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_name_is_refused(home: Home) -> None:
    assert '"" cannot be the name of a cluster' in refusal("up", "--name", "")
    assert home.clusters() == []
