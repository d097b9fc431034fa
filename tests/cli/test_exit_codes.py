"""The exit codes that docs/cli.md promises, one after the other."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from gpupool.cli import doctor, exit_codes, explain, explain_view
from gpupool.cli.main import gpupool
from gpupool.doctor.evidence import Finding, Level
from gpupool.local.home import ClusterDirectory, Home


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(gpupool, arguments, input=stdin, catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["version"], exit_codes.DONE),
        (["gpu", "list", "--help"], exit_codes.DONE),
        (["clusters"], exit_codes.DONE),
        (["down", "--name", "a"], exit_codes.DONE),
        (["down", "--name", "b"], exit_codes.ERROR),
        (["quota", "set", "clusters=many"], exit_codes.ERROR),
        (["gpu", "list", "--kubeconfig", "no-such-file"], exit_codes.ERROR),
        (["reset", "--name", "a"], exit_codes.ERROR),  # and nobody says yes
        ([], exit_codes.USAGE),
        (["gpu"], exit_codes.USAGE),
        (["upp"], exit_codes.USAGE),
        (["up", "--colour"], exit_codes.USAGE),
        (["gpu", "cordon", "node"], exit_codes.USAGE),
        (["status", "--name", "a"], exit_codes.NOT_RUNNING),
    ],
)
def test_the_exit_code_says_how_it_went(
    home: Home, cluster: ClusterDirectory, arguments: list[str], code: int
) -> None:
    assert run(*arguments).exit_code == code


@pytest.mark.parametrize(("level", "code"), [(Level.NOTE, 0), (Level.WRONG, 1)])
def test_doctor_exits_with_1_when_something_is_wrong(
    monkeypatch: pytest.MonkeyPatch, level: Level, code: int
) -> None:
    found = [Finding(level, "node a", "is lost")]
    monkeypatch.setattr(doctor, "ask_cluster", lambda *_, **__: found)
    assert run("doctor").exit_code == code


@pytest.mark.parametrize(("refused", "code"), [(False, 0), (True, 1)])
def test_explain_exits_with_1_when_a_pod_would_be_refused(
    monkeypatch: pytest.MonkeyPatch, refused: bool, code: int
) -> None:
    verdicts = (explain_view.FITS, explain_view.REFUSED if refused else explain_view.WAITS)
    answers = [explain_view.Answer("Pod", "default", "a", verdict) for verdict in verdicts]
    monkeypatch.setattr(explain, "ask_cluster", lambda *_, **__: answers)
    assert run("explain", "a").exit_code == code


def test_ctrl_c_is_130_and_no_traceback(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        file = tmp_path / "kubeconfig"
        server = {"server": f"https://127.0.0.1:{silent.getsockname()[1]}"}
        config = {
            "clusters": [{"name": "a", "cluster": server}],
            "contexts": [{"name": "a", "context": {"cluster": "a"}}],
            "current-context": "a",
        }
        file.write_text(json.dumps(config))
        command = [sys.executable, "-m", "gpupool", "gpu", "list", "--kubeconfig", str(file)]
        with (
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,
            silent.accept()[0],  # now it waits for an answer that does not come
        ):
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
    assert process.returncode == exit_codes.INTERRUPTED
    assert said == "\nInterrupted.\n"


def test_help_shows_every_exit_code() -> None:
    codes = {value for name, value in vars(exit_codes).items() if isinstance(value, int)}
    assert set(exit_codes.MEANINGS) == codes
    _, _, shown = run("--help").output.partition("Exit codes:\n")
    for code, words in exit_codes.MEANINGS.items():
        assert f"{code} {words}" in " ".join(shown.split())


@pytest.mark.parametrize("command", ["status", "doctor", "explain"])
def test_a_command_whose_exit_code_is_an_answer_says_so(command: str) -> None:
    found = gpupool.get_command(click.Context(gpupool), command)
    assert found is not None
    assert "exit code is" in (found.help or "")


def test_ctrl_c_while_modules_are_loaded_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    ended = subprocess.run(
        [sys.executable, "-m", "gpupool", "version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (exit_codes.INTERRUPTED, "\nInterrupted.\n")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("closed", [">&-", "<&-", ">&- <&-", "2>&-"])
@pytest.mark.parametrize(
    ("line", "code"),
    [("clusters", exit_codes.DONE), ("quota", exit_codes.DONE), ("no", exit_codes.USAGE)],
)
def test_closed_streams_are_no_error(line: str, closed: str, code: int) -> None:
    command = f"{sys.executable} -m gpupool {line} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
