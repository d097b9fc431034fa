"""The server's log stays small while the server runs."""

import subprocess
import sys
from pathlib import Path

import pytest

_TALKS = """
import logging, os, sys
from pathlib import Path
from gpupool.local import server_log
path = Path(sys.argv[1])
file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.dup2(file, 1)
os.dup2(file, 2)
if sys.argv[2] == "fails once":
    real, calls = Path.replace, []
    def replace(self, to):
        calls.append(self)
        if len(calls) == 2:  # between the two steps of a rotation
            raise OSError(28, "No space left on device")
        return real(self, to)
    Path.replace = replace
logging.basicConfig(level=logging.INFO, handlers=[server_log.ServerLog(path, limit=1000)])
for number in range(500):
    logging.info("record %d", number)
    os.write(1, b"output %d\\n" % number)
"""


@pytest.mark.parametrize("disk", ["works", "fails once"])
def test_a_log_is_rotated_while_the_server_runs(tmp_path: Path, disk: str) -> None:
    path = tmp_path / "server.log"
    subprocess.run([sys.executable, "-c", _TALKS, str(path), disk], check=True, timeout=60)
    older = tmp_path / "server.log.1"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["server.log", "server.log.1"]
    assert path.stat().st_size < 1200
    assert older.stat().st_size < 1200
    lines = (older.read_text() + path.read_text()).splitlines()
    assert lines[-1] == "output 499"
    assert "record 499" in lines[-2]


def test_a_terminal_or_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("of another server\n")
    script = _TALKS.replace("file = os.open(path", "file = os.open(path.with_name('other')")
    subprocess.run([sys.executable, "-c", script, str(path), "works"], check=True, timeout=60)
    assert path.read_text() == "of another server\n"
    assert (tmp_path / "other").stat().st_size > 5000
