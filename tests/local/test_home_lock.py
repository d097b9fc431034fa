"""The lock of a home: who waits says for whom, and does not wait for ever."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.local import home_lock
from gpupool.local.home import CannotUse, ClusterDirectory, Home
from gpupool.local.server_process import Server, running_server
from tests.local.test_server import start

_HOLDER = """
import sys
from pathlib import Path
from gpupool.local.home import Home
with Home(Path(sys.argv[1])).alone():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def server(home: Home, cluster: ClusterDirectory) -> Server:
    """It has started before anybody takes the lock."""
    start(home, cluster)
    found = running_server(cluster)
    assert found is not None
    return found


@pytest.fixture
def holder(home: Home) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock until its input ends."""
    command = [sys.executable, "-c", _HOLDER, str(home.root)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for a process that works gives up at once."""
    monkeypatch.setattr(home_lock, "_GIVE_UP_S", 0.0)


def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGSTOP)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])


def test_a_stopped_process_that_holds_the_lock_is_named_with_what_to_do(
    home: Home, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_lock, "_GIVE_UP_ON_STOPPED_S", 0.0)
    _stop(holder)
    with pytest.raises(CannotUse) as refused, home.alone():
        pass
    words = refused.value.message
    assert f"is held by process {holder.pid} ({sys.executable}" in words
    assert f"found it stopped. Let it go on (fg, or kill -CONT {holder.pid})" in words
    assert words.isprintable(), "the command of another process stays within its line"


@pytest.mark.usefixtures("impatient")
def test_a_process_that_works_for_ever_is_named(home: Home, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(CannotUse, match=f"still works. .* kill {holder.pid}"), home.alone():
        pass


def test_who_waits_says_for_whom_and_goes_on_when_the_lock_is_free(
    home: Home, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_lock, "_SAY_AFTER_S", 0.0)
    said: list[str] = []

    def let_go(words: str) -> None:
        said.append(words)
        assert holder.stdin is not None
        holder.stdin.close()

    with home_lock.held(home.root / ".lock", let_go):
        assert (home.root / ".lock").read_text() == str(os.getpid())
    assert len(said) == 1
    assert said[0].startswith(f"Waiting for process {holder.pid} (")


@pytest.mark.usefixtures("impatient")
def test_a_holder_that_has_written_no_pid_is_another_process(
    home: Home, holder: subprocess.Popen[str]
) -> None:
    (home.root / ".lock").write_text("")
    with pytest.raises(CannotUse, match=r"held by another process: .* fuser"), home.alone():
        pass


@pytest.mark.usefixtures("impatient")
def test_a_process_that_has_the_number_of_a_former_holder_is_not_blamed(
    home: Home, holder: subprocess.Popen[str]
) -> None:
    """A child keeps the lock of a holder that has ended, and the number is given to another."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (home.root / ".lock").write_text(str(other.pid))
        with pytest.raises(CannotUse, match=r"held by another process: .* fuser"), home.alone():
            pass
        other.kill()


@pytest.mark.usefixtures("impatient")
def test_a_holder_that_has_ended_is_not_blamed(home: Home, holder: subprocess.Popen[str]) -> None:
    (home.root / ".lock").write_text("999999999")  # above all that a kernel gives
    with pytest.raises(CannotUse, match=r"held by another process: .* fuser"), home.alone():
        pass


@pytest.mark.usefixtures("impatient")
def test_without_proc_the_number_in_the_file_is_believed(
    home: Home, holder: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_lock, "_PROC", tmp_path / "none")
    with pytest.raises(CannotUse, match=f"held by process {holder.pid}"), home.alone():
        pass


@pytest.mark.usefixtures("impatient")
def test_a_lock_of_a_process_that_was_killed_is_free(
    home: Home, holder: subprocess.Popen[str]
) -> None:
    holder.kill()
    holder.wait()
    with home.alone():
        pass


def test_a_lock_that_cannot_be_opened_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with pytest.raises(CannotUse, match="gpupool's home"), Home(tmp_path).alone():
        pass


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("words", [["reset", "--yes"], ["down"]], ids=["reset", "down"])
def test_a_command_that_does_not_get_the_lock_stops_no_server(
    server: Server,
    holder: subprocess.Popen[str],
    cluster: ClusterDirectory,
    words: list[str],
) -> None:
    result = CliRunner().invoke(gpupool, [*words, "--name", cluster.name])
    assert result.exit_code == 1
    assert f"is held by process {holder.pid}" in result.output
    assert running_server(cluster) == server
