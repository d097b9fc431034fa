import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from localkube.kubelet import process_table
from localkube.kubelet.launches import Launch, Launches, LaunchFailed
from localkube.kubelet.process_table import MARK

PATIENCE_S = 20
# A container with a child that has left its process group, and whose parent has ended.
SCRIPT = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; echo $$; exec sleep 1000"

SERVER = """
import asyncio, sys
from pathlib import Path
from tests.localkube.kubelet.test_launcher import started

async def main():
    launches, pids = await started(Path(sys.argv[1]))
    print(*pids, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def launch(run_id: str, *argv: str) -> Launch:
    env = {"PATH": "/usr/bin:/bin", MARK: run_id}
    return Launch(run_id, run_id, argv, env, "/", None)


async def started(directory: Path) -> tuple[Launches, list[int]]:
    """The launcher, the container, and a child that has left the container's session."""
    launches = Launches(directory, isolate=False)
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    await launches.start(launch("a", "sh", "-c", SCRIPT), [nothing, writing, os.dup(nothing)])
    said = b""
    while said.count(b"\n") < 2:
        said += await asyncio.to_thread(os.read, reading, 100)
    os.close(reading)
    assert launches._process is not None
    return launches, [launches._process.pid, *map(int, said.split())]


def wait_gone(pid: int) -> None:
    """Waits until the process, which is not our child, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], PATIENCE_S)[0], f"{pid} still runs"
    finally:
        os.close(descriptor)


def test_nothing_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path / "run")], stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    pids = [int(pid) for pid in server.stdout.readline().split()]
    assert len(pids) == 3
    server.kill()
    server.wait()
    server.stdout.close()
    for pid in pids:
        wait_gone(pid)


async def test_the_programs_of_a_launcher_that_dies_are_killed(tmp_path: Path) -> None:
    launches, (launcher, *pids) = await started(tmp_path / "run")
    ended: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
    launches.exited = lambda run_id, code: ended.set_result((run_id, code))
    os.kill(launcher, signal.SIGKILL)
    assert await ended == ("a", 137)
    # The next launcher kills what the kernel did not, and works.
    nothing = os.open(os.devnull, os.O_RDWR)
    with pytest.raises(LaunchFailed) as failure:
        await launches.start(launch("b", "no-such-program"), [nothing])
    assert failure.value.code == 127
    for pid in pids:
        wait_gone(pid)
    await launches.close()


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "1000"], start_new_session=True)


async def test_the_next_launcher_kills_what_two_killed_processes_left(tmp_path: Path) -> None:
    stray, other = sleeper(), sleeper()
    run = tmp_path / "run"
    run.mkdir()
    (run / str(stray.pid)).write_text(f"{process_table.start_time(stray.pid)} a")
    (run / str(other.pid)).write_text("1 b")  # the pid belongs to another process now
    launches = Launches(run, isolate=False)
    await launches.namespaces()
    assert stray.wait(PATIENCE_S) == -signal.SIGKILL
    assert other.poll() is None
    assert list(run.iterdir()) == []
    await launches.close()
    other.kill()
    other.wait()


async def test_all_of_a_container_ends_with_it(tmp_path: Path) -> None:
    launches, (_, _, *pids) = await started(tmp_path / "run")
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    launches.exited = lambda _, code: ended.set_result(code)
    launches.signal("a", signal.SIGTERM)
    assert await ended == 143
    for pid in pids:
        wait_gone(pid)
    await launches.close()


async def test_a_plain_signal_is_for_the_program_alone(tmp_path: Path) -> None:
    launches = Launches(tmp_path / "run", isolate=False)
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    launches.exited = lambda _, code: ended.set_result(code)
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    script = "trap 'kill -0 $child && exit 9' TERM; sleep 1000 & child=$!; echo up; wait"
    await launches.start(launch("a", "sh", "-c", script), [nothing, writing, os.dup(nothing)])
    assert await asyncio.to_thread(os.read, reading, 100) == b"up\n"
    os.close(reading)
    launches.signal("a", signal.SIGTERM)
    assert await ended == 9
    await launches.close()
