"""What the shell completes, in a real bash, zsh and fish."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.local.home import ClusterDirectory
from tests.cli.terminal import Shell, shell

CONTEXT = "arn:aws:eks:eu-1:cluster/gpus"


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield silent


@pytest.fixture
def environment(cluster: ClusterDirectory, tmp_path: Path, server: socket.socket) -> dict[str, str]:
    address = f"https://127.0.0.1:{server.getsockname()[1]}"
    config = {
        "clusters": [{"name": "a", "cluster": {"server": address}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": "a"}}],
        "current-context": CONTEXT,
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    (tmp_path / "training.yaml").touch()
    return {
        "GPUPOOL_HOME": os.environ["GPUPOOL_HOME"],
        "HOME": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "kubeconfig"),
    }


SHELLS = [
    pytest.param(
        name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"there is no {name}")
    )
    for name in ("bash", "zsh", "fish")
]


@pytest.fixture(params=SHELLS)
def typing(
    request: pytest.FixtureRequest, environment: dict[str, str], tmp_path: Path
) -> Iterator[Shell]:
    with shell(request.param, environment, tmp_path) as made:
        yield made


def test_commands_options_and_names_are_completed(typing: Shell) -> None:
    for typed, completed in {
        "gpupool sta\t": "gpupool status ",
        "gpupool gpu unc\t": "gpupool gpu uncordon ",
        "gpupool gpu list --kubec\t": "gpupool gpu list --kubeconfig ",
        "gpupool status --name \t": "gpupool status --name a ",
        "gpupool status --name=\t": "gpupool status --name=a ",
        "gpupool gpu list --name \t": "gpupool gpu list --name a ",
        "gpupool example shared\t": "gpupool example shared-gpus ",
        "gpupool up --config tr\t": "gpupool up --config training.yaml ",
        "gpupool up --config=tr\t": "gpupool up --config=training.yaml ",
        "gpupool gpu list --kubeconfig kub\t": "gpupool gpu list --kubeconfig kubeconfig ",
        "gpupool explain --policy best\t": "gpupool explain --policy best-fit ",
        "gpupool quota set rou\t": "gpupool quota set routes-per-cluster=",
        "gpupool gpu list --context arn:aws:e\t": f"gpupool gpu list --context {CONTEXT} ",
        "gpupool gpu list --context=arn:\t": f"gpupool gpu list --context={CONTEXT} ",
        "gpupool completion f\t": "gpupool completion fish ",
        'gpupool up --name "a b" --fore\t': 'gpupool up --name "a b" --foreground ',
    }.items():
        assert typing.typed(typed) == completed


def test_a_cluster_that_does_not_answer_completes_nothing_and_says_nothing(typing: Shell) -> None:
    for typed in ("gpupool gpu list n\t", "gpupool explain x\t", "gpupool gpu cordon n 0\t"):
        assert typing.typed(typed) == typed.rstrip("\t")


def asked(shell: str, environment: dict[str, str], line: str) -> str:
    """What gpupool answers to a shell that asks as click's scripts do."""
    words = line.split(" ")
    told = {
        "_GPUPOOL_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "gpupool"],
        env=environment | told,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_zsh_and_fish_are_told_the_same(environment: dict[str, str]) -> None:
    assert asked("zsh", environment, "gpupool status --name ") == "plain\na\n_\n"
    assert asked("fish", environment, "gpupool status --name ") == "plain,a\n"
    words = "Show whether a cluster runs, where, and what fails in it."
    assert asked("zsh", environment, "gpupool stat") == f"plain\nstatus\n{words}\n"
    assert asked("fish", environment, "gpupool stat") == f"plain,status\t{words}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_for_gpupool(shell: str) -> None:
    script = CliRunner().invoke(gpupool, ["completion", shell]).output
    assert f"_GPUPOOL_COMPLETE={shell}_complete" in script
    assert script.endswith("\n")


def test_another_shell_is_refused() -> None:
    result = CliRunner().invoke(gpupool, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.output


@pytest.mark.parametrize("typed", ["gpupool c", "gpupool gpu li"])
def test_completion_of_commands_loads_no_cluster(environment: dict[str, str], typed: str) -> None:
    code = (
        "import sys\n"
        "from gpupool.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'yaml', 'aiohttp', 'numpy', 'cryptography', 'jsonschema_rs'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    told = {"_GPUPOOL_COMPLETE": "bash_complete", "COMP_LINE": typed}
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment | told,
    )
