"""`gpupool plugins`: what is written where, and what is left alone."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpupool import __version__
from gpupool.cli.kubectl_plugin import completions
from gpupool.cli.main import gpupool

NAMES = {
    f"{what}-{plugin}"
    for what in ("kubectl", "kubectl_complete")
    for plugin in ("gpupool", "inspect-gpushare", "inspect-cgpu")
}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(gpupool, ["plugins", *map(str, arguments)], catch_exceptions=False)


def there(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default directory, in a home of its own and not in the PATH."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".local" / "bin"


def test_they_are_installed_run_and_are_removed(folder: Path) -> None:
    assert run("install").exit_code == 0
    assert there(folder) == NAMES
    done = subprocess.run([folder / "kubectl-gpupool", "version"], capture_output=True, check=True)
    assert done.stdout.decode() == f"gpupool {__version__}\n"
    (folder / "mine").touch()
    assert run("uninstall").output == f"The plugins are removed from {folder}.\n"
    assert there(folder) == {"mine"}
    assert "There is no plugin of gpupool in" in run("uninstall").output


def test_they_can_be_installed_again(folder: Path) -> None:
    assert run("install").exit_code == run("install").exit_code == 0
    assert there(folder) == NAMES


def test_a_usage_error_names_what_was_typed(folder: Path) -> None:
    run("install")
    for plugin in ("gpupool", "inspect gpushare", "inspect cgpu"):
        program = folder / f"kubectl-{plugin.replace(' ', '-')}"
        done = subprocess.run([program, "--no-such"], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith(f"Usage: kubectl {plugin} [OPTIONS]")


def test_it_says_when_the_directory_is_not_in_the_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run("install")
    assert f"{folder} is not in your PATH" in said.stderr
    assert f'export PATH={folder}:"$PATH"' in said.stderr
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert "not in your PATH" not in run("install").stderr


def test_it_says_when_another_plugin_comes_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "kubectl-inspect-cgpu"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o700)
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path), str(folder), os.environ["PATH"])))
    assert f"Another plugin comes first in your PATH: {other}\n" in run("install").stderr


@pytest.mark.parametrize("link", [False, True])
def test_a_file_of_somebody_else_is_not_overwritten(
    folder: Path, tmp_path: Path, link: bool
) -> None:
    folder.mkdir(parents=True)
    theirs, target = folder / "kubectl-inspect-gpushare", tmp_path / "target"
    target.write_text("theirs")
    theirs.symlink_to(target) if link else theirs.write_text("theirs")
    refused = run("install")
    assert refused.exit_code == 1
    assert (
        f"Nothing is installed: these files are there, and not of gpupool's making.\n  {theirs}\n"
        in (refused.stderr)
    )
    assert "--force" in refused.stderr
    assert there(folder) == {theirs.name}
    assert run("uninstall").exit_code == 0
    assert theirs.read_text() == "theirs"
    assert run("install", "--force").exit_code == 0
    assert "gpupool" in theirs.read_text()
    assert target.read_text() == "theirs"


def test_a_directory_that_cannot_be_written_to_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = run("install", "--dir", tmp_path / "file" / "below")
    assert said.exit_code == 1
    assert "Not a directory" in said.output


def test_kubectl_is_told_what_it_can_complete() -> None:
    words = "List the cards, and how much of them is in use."
    assert completions("gpupool", ["gpu", "li"]) == [f"list\t{words}", ":4"]
    assert completions("gpupool", ["up", "--config", ""]) == [":0"]
    assert completions("inspect cgpu", ["--det"]) == ["--details\tAlso list the pods.", ":4"]


def test_a_directory_that_cannot_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("install", "--dir", tmp_path / "file" / "bin")
    assert result.exit_code == 1
    assert f"{tmp_path}/file/bin: wanted a directory that you may make" in result.output
    assert "Not a directory. Choose another with --dir." in result.output
