"""What a container gets of the signals that its server ignores or blocks."""

import subprocess
import sys
from pathlib import Path

import pytest

# Like a server that was started by nohup and by a careless parent: all is ignored or blocked.
_SERVER = """
import asyncio, os, signal, sys
from pathlib import Path
from localkube.kubelet.launches import Launch, Launches
from localkube.kubelet.sandbox import View

for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD})

async def main():
    directory = Path(sys.argv[1])
    launches = Launches(directory / "run", isolate=True)
    view = None
    if sys.argv[2] == "isolated":
        if not await launches.namespaces():
            print("no namespaces here")
            return
        (directory / "root").mkdir()
        view = View(str(directory / "root"), "host", 0, 0, ())
    ended = asyncio.Event()
    launches.exited = lambda *_: ended.set()
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    argv = ["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"]
    env = {"PATH": "/usr/bin:/bin"}
    main = sys.argv[2] != "exec"
    launch = Launch("a", "a", argv, env, "/", view, is_main=main)
    await launches.start(launch, [nothing, writing, os.dup(nothing)])
    await ended.wait()
    print(os.read(reading, 1000).decode())
    await launches.close()

asyncio.run(main())
"""


# Signals 32 and 33 are the C library's own. No program can set them, and whatever posix_spawn
# starts (make does so) ignores the first of them.
_OF_GLIBC = 0b11 << 31


@pytest.mark.parametrize("how", ["plain", "isolated", "exec"])
def test_no_signal_is_ignored_or_blocked_in_a_container(tmp_path: Path, how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SERVER, str(tmp_path), how], capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    if b"no namespaces" in done.stdout:
        pytest.skip("this kernel allows no user namespaces")
    masks = dict(line.split() for line in done.stdout.splitlines() if line)
    assert {name: int(mask, 16) & ~_OF_GLIBC for name, mask in masks.items()} == {
        b"SigBlk:": 0,
        b"SigIgn:": 0,
    }
