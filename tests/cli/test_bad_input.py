"""Whatever people hand us by mistake: a message that helps, an exit code, and no traceback.

The rows are in bad_input/. `pytest -rP tests/cli/test_bad_input.py` shows every message: read what
you changed as somebody does who sees it for the first time.
"""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpupool.cli.main import gpupool
from tests.cli.bad_input.files import CLUSTER_FILES, KUBECONFIGS, MANIFESTS, OTHERS, TRACES
from tests.cli.bad_input.row import Bad
from tests.cli.bad_input.rows import (
    CLUSTER_FILE,
    ENVIRONMENT,
    KUBECONFIG,
    NAMES_AND_NUMBERS,
)
from tests.cli.bad_input.rows_of_programs import MANIFEST, PROGRAMS, TRACE

TABLE = (
    *NAMES_AND_NUMBERS,
    *CLUSTER_FILE,
    *ENVIRONMENT,
    *KUBECONFIG,
    *PROGRAMS,
    *MANIFEST,
    *TRACE,
)
# What only a programmer understands.
INTERNAL = re.compile(
    r"Traceback|File \".*\", line \d|\b[A-Z]\w+(Error|Exception)\b|\[Errno|_ssl\.c|codec|aiohttp"
    r"|asyncio|errno|object at 0x|<class|Cannot connect to host|while attempting to bind"
)
VARIABLES = ("XDG_STATE_HOME", "KUBECONFIG", "NODE_NAME", "HTTPS_PROXY", "https_proxy", "NO_PROXY")


def name(row: Bad) -> str:
    given = " ".join(f"{key}={value}" for key, value in row.environment.items())
    return f"{given} {row.line}".strip()[:80]


def write_files(directory: Path) -> None:
    for files in (CLUSTER_FILES, KUBECONFIGS, MANIFESTS, OTHERS, TRACES):
        for file, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            (directory / file).write_bytes(data)
    (directory / "dir").mkdir()
    (directory / "me").mkdir()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("bad")
    write_files(directory)
    return directory


@pytest.fixture
def there(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the directory of the files; the environment names no cluster."""
    monkeypatch.chdir(files)
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(files / "me"))
    monkeypatch.setenv("GPUPOOL_HOME", str(tmp_path / "home"))


def run(row: Bad) -> Result:
    runner = CliRunner(env=dict(row.environment))
    return runner.invoke(gpupool, shlex.split(row.line), input=row.stdin, catch_exceptions=False)


def check(row: Bad, code: int, message: str) -> None:
    print(f"gpupool {name(row)}\n{message}")  # noqa: T201  # shown by -rP
    assert code == row.code
    assert not INTERNAL.search(message)
    for words in row.words:
        assert words in message


def test_the_table_has_more_than_a_hundred_rows() -> None:
    assert len({(row.line, *row.environment.items(), row.stdin) for row in TABLE}) > 200


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("row", TABLE, ids=name)
def test_bad_input_is_answered_with_a_message(row: Bad) -> None:
    result = run(row)
    check(row, result.exit_code, result.stderr)
    assert not result.stdout
