"""Launches whose launcher meets faults: calls of the kernel that fail as on a machine that has no
room, no descriptors or no processes left."""

import subprocess
import sys
from pathlib import Path

from localkube.kubelet.launches import Launch, Launches
from localkube.kubelet.process_table import MARK

# Runs the launcher with some calls replaced. A fault is "call errno every": each `every`-th call
# fails; `every` 0 is only the first. The programs "hang-at-first" and "hang-at-last" never start.
_FAULTY = """
import os, pathlib, signal, sys
from localkube.kubelet import launched, launcher

def hanging(place, name, program):
    real = getattr(place, name)
    def call(message, *more):
        if message["argv"][0] == program:
            signal.pause()
        real(message, *more)
    setattr(place, name, call)

hanging(launcher, "become", "hang-at-first")
hanging(launched, "_run", "hang-at-last")

def faulty(place, name, number, every):
    real, calls = getattr(place, name), [0]
    def call(*arguments, **named):
        calls[0] += ready[0]
        fails = calls[0] == 1 if every == 0 else calls[0] % every == 0
        if fails and ready[0]:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **named)
    setattr(place, name, call)

ready = [False]
places = {"fork": os, "pipe": os, "listdir": os, "write_text": pathlib.Path, "unlink": pathlib.Path}
prepare = launcher.Launcher._prepare
def prepared(self):
    made = prepare(self)
    ready[0] = True
    return made
launcher.Launcher._prepare = prepared
for fault in sys.argv[3:]:
    name, number, every = fault.split()
    faulty(places[name], name, int(number), int(every))
launcher.main()
"""
_ROOT = Path(__file__).parents[3]


class FaultyLaunches(Launches):
    def __init__(self, directory: Path, *faults: str) -> None:
        super().__init__(directory, isolate=False)
        self._faults = faults

    def _spawn(self, descriptor: int) -> subprocess.Popen[bytes]:
        self._directory.mkdir(exist_ok=True)
        program = [sys.executable, "-c", _FAULTY, str(descriptor), str(self._directory)]
        return subprocess.Popen(
            [*program, *self._faults],
            pass_fds=(descriptor,),
            env={"PYTHONPATH": f"{_ROOT / 'src'}"},
            start_new_session=True,
        )


def launch(run_id: str, *argv: str, size: int = 0) -> Launch:
    """`size`: bytes of its environment. A variable may have no more than 128 KiB."""
    large = {f"LARGE_{n}": "x" * 100_000 for n in range(size // 100_000)}
    env = {"PATH": "/usr/bin:/bin", MARK: run_id} | large
    return Launch(run_id, run_id, argv, env, "/", None)
