import ctypes
import os
import select
import subprocess
import sys
from collections.abc import Iterator

import pytest

from localkube.kubelet import process_table
from localkube.kubelet.process_table import MARK

_NAME = "import ctypes, sys; ctypes.CDLL(None).prctl(15, bytes.fromhex(sys.argv[1]), 0, 0, 0)"


def program(script: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """Runs a Python script that says "up" and then waits for the end of its input."""
    waiting = f"{script}; print('up', flush=True); sys.stdin.read()"
    made = subprocess.Popen(
        [sys.executable, "-S", "-c", f"import sys; {waiting}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert made.stdout is not None
    assert made.stdout.readline() == b"up\n"
    return made


@pytest.fixture(params=["61e8aeade7bb83e4bbbbe58aa1e7a8", "290a2028", "ff", "0a"])
def named(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose name is cut in the middle of a character, or has parentheses or line ends."""
    with program(_NAME, request.param, **{MARK: "a"}) as made:
        yield made
        assert made.stdin is not None
        made.stdin.close()


def test_a_process_with_any_name_is_read(named: subprocess.Popen[bytes]) -> None:
    found = process_table.entry(named.pid)
    assert found is not None
    assert (found.parent, found.session) == (os.getpid(), named.pid)
    assert named.pid in {entry.pid for entry in process_table.everyone()}
    assert process_table.own_memory(named.pid) > 0
    assert process_table.only_child(os.getpid()) > 0
    assert process_table.variable(named.pid, MARK) == "a"


def test_a_process_that_is_gone_has_nothing(named: subprocess.Popen[bytes]) -> None:
    named.kill()
    named.wait()
    assert process_table.entry(named.pid) is None
    assert process_table.start_time(named.pid) == 0
    assert process_table.own_memory(named.pid) == 0
    assert process_table.variable(named.pid, MARK) == ""


_LEAVES = """
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        sys.stdin.read()
    os._exit(0)
os.wait()
"""


def test_an_orphan_with_its_own_session_belongs_to_its_container() -> None:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans become our children, as the launcher's do
    reading, writing = os.pipe()
    made = subprocess.Popen(
        [sys.executable, "-S", "-c", f"import sys{_LEAVES}sys.stdin.read()"],
        stdin=reading,
        stdout=subprocess.PIPE,
        env={MARK: "a"},
        start_new_session=True,
    )
    try:
        assert made.stdout is not None
        orphan = int(made.stdout.readline())
        while (entry := process_table.entry(orphan)) and entry.parent != os.getpid():
            select.select([], [], [], 0.001)
        found = dict[int, str]()
        for container, each in process_table.of_containers({made.pid: "a"}, os.getpid()):
            found[each.pid] = container
        assert found[made.pid] == found[orphan] == "a"
        assert os.getpid() not in found
    finally:
        ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
        os.close(writing)
        os.close(reading)
        made.communicate()
        os.waitpid(orphan, 0)


def test_processes_of_others_belong_to_no_container() -> None:
    with program("pass") as one, program("pass") as other:
        found = process_table.of_containers({one.pid: "a", 1 << 22: "gone"}, os.getpid())
        assert {entry.pid: container for container, entry in found} == {one.pid: "a"}
        for each in (one, other):
            assert each.stdin is not None
            each.stdin.close()
