"""Progress: a live line in a terminal that vanishes, plain lines elsewhere, and which commands
show it."""

import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import click
import pytest
from click.testing import CliRunner

from gpupool.cli import progress as shown
from gpupool.cli.main import gpupool
from gpupool.cli.progress import Progress, progress
from gpupool.local.home import ClusterDirectory
from gpupool.local.launch import Spawned
from localkube.data_directory import Lock
from tests.cli.terminal import read_until

PATIENCE_S = 60
# Works until its standard input ends.
PROGRAM = """
import sys
from gpupool.cli import progress
progress.LIVE_AFTER_S = progress.PLAIN_AFTER_S = progress.PLAIN_EVERY_S = 0.01
with progress.progress("Stopping", {total}) as shown:
    shown.say("[b]2 pods[/b]")
    sys.stdin.read()
print("stopped")
"""


def test_a_line_says_what_how_far_and_how_long() -> None:
    state = Progress("Replaying", 40)
    state.advance(12)
    assert state.line(3.4) == "Replaying: 12 of 40 (3 s)"
    state.say("best-fit")
    assert state.line(3.4) == "Replaying: 12 of 40, best-fit (3 s)"
    assert Progress("Stopping").line(0.0) == "Stopping (0 s)"


def test_what_is_done_soon_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Stopping"):
        pass
    assert capsys.readouterr() == ("", "")


def test_what_always_takes_long_says_that_it_has_begun(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Installing", at_once=True):
        assert capsys.readouterr() == ("", "Installing ...\n")


def test_an_error_of_the_work_ends_it() -> None:
    before = threading.active_count()
    with pytest.raises(ValueError, match="no"), progress("Stopping"):
        raise ValueError("no")
    assert threading.active_count() == before


@pytest.mark.parametrize("total", [None, 4])
def test_without_a_terminal_there_are_lines_and_no_control_characters(total: int | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(total=total)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        # On a busy machine, a line may be shown before the work has said anything.
        told = next(line for line in process.stderr if "pods" in line)
        out, rest = process.communicate()
    counted = "0 of 4, " if total else ""
    assert re.fullmatch(
        re.escape(f"Stopping: {counted}[b]2 pods[/b] (") + r"\d+ s\) \.\.\.\n", told
    )
    assert out == "stopped\n"
    assert all(each == "\n" or each.isprintable() for each in rest)


@pytest.mark.parametrize("total", [None, 4])
def test_in_a_terminal_the_line_vanishes(total: int | None) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(total=total)],
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "60"},
    ) as process:
        os.close(theirs)
        assert process.stdin is not None
        seen = read_until(ours, b"[b]2 pods[/b]")
        process.stdin.close()
        seen += read_until(ours, None)
    os.close(ours)
    # The cursor is shown again, and the last that is written before the result erases the line.
    assert seen.endswith(b"\x1b[2Kstopped\r\n")
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")


def test_a_terminal_without_unicode_gets_a_spinner_of_ascii() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(total=None)],
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "60", "PYTHONIOENCODING": "ascii"},
    ) as process:
        os.close(theirs)
        assert process.stdin is not None
        seen = read_until(ours, b"[b]2 pods[/b]")
        process.stdin.close()
        seen += read_until(ours, None)
    os.close(ours)
    assert seen.isascii()
    assert b"\\u28" not in seen


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Work that goes on until a line is shown."""
    heard = threading.Event()
    monkeypatch.setattr(shown, "PLAIN_AFTER_S", 0.01)
    monkeypatch.setattr(shown, "PLAIN_EVERY_S", 0.01)
    plain = shown._Lines.show

    def show(self: Any, state: Progress, elapsed_s: float) -> None:
        plain(self, state, elapsed_s)
        heard.set()

    monkeypatch.setattr(shown._Lines, "show", show)

    def work(*_: Any, **__: Any) -> Any:
        heard.clear()  # what came before was not about this
        assert heard.wait(PATIENCE_S)
        raise click.ClickException("This is enough.")

    return work


@pytest.mark.parametrize(
    ("arguments", "slow", "words"),
    [
        (["down", "--name", "a"], "gpupool.cli.down.stop_server", 'Stopping cluster "a" (0 s) ...'),
        (
            ["reset", "--yes", "--name", "a"],
            "gpupool.cli.reset.delete_cluster",
            "its data (0 s) ...",
        ),
        (
            ["up", "--name", "a"],
            "gpupool.local.launch.wait_started",
            'Starting cluster "a" (0 s) ...',
        ),
        (["resize", "p", "--gpu-mem", "3"], "gpupool.cli.resize.ask_cluster", "Resizing default/p"),
        (["cleanup"], "gpupool.cli.cleanup.ask_cluster", "Cleaning up (0 s) ..."),
        (["doctor"], "gpupool.doctor.look.look", "Looking at the installation"),
        (["gpu", "list"], "kubeclient.client.Kube.list", "Asking the API server"),
        (
            ["example", "shared-gpus", "--name", "a"],
            "gpupool.cli.example.ask_cluster",
            "shared-gpus.yaml",
        ),
        (
            ["open", "web"],
            "gpupool.cli.open.link_when_ready",
            "Waiting for the address of service web",
        ),
        (["replay", "--synthetic", "9"], "gpupool.replay.study.outcomes", " pods: 0 of "),
    ],
)
def test_a_command_that_takes_long_shows_it(
    cluster: ClusterDirectory,
    spoken: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    slow: str,
    words: str,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(cluster.path)))
    server = Spawned(cluster, Mock(returncode=0), Mock(), 0)
    monkeypatch.setattr("gpupool.local.launch.spawn", lambda *_, **__: server)
    monkeypatch.setattr(slow, spoken)
    needs_server = arguments[0] == "example"
    with Lock(cluster.path) if needs_server else nullcontext():
        result = CliRunner().invoke(gpupool, arguments, catch_exceptions=False)
    assert words in result.stderr
    assert "This is enough." in result.stderr
    assert result.stdout == ""


def kubeconfig(folder: Path) -> Path:
    file = folder / "kubeconfig"
    file.write_text(
        '{"clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],'
        ' "contexts": [{"name": "a", "context": {"cluster": "a"}}], "current-context": "a"}'
    )
    return file
