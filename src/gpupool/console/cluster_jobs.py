"""Jobs: commands of gpupool that make, start, stop or delete a cluster of this machine.

A command is a process of its own. It goes on when the console ends: half a cluster helps nobody.
"""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

_LOOK_EVERY_S = 0.2
_MOST_BYTES = 16_000  # of what a command has written, from the end
_MOST = 50
# Sequences of terminals: colours, links.
_CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f]"
)


class Verb(StrEnum):
    CREATE = "create"
    START = "start"
    STOP = "stop"
    DELETE = "delete"


@dataclass(slots=True)
class Job:
    name: str  # of the cluster
    verb: Verb
    folder: Path  # its cluster file and its output; gone when it has ended
    text: str = ""  # what it has written so far
    code: int | None = None  # None: it runs
    task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self.code is None

    @property
    def last_line(self) -> str:
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        # What went wrong is said first, and what to do next after it.
        errors = [line for line in lines if line.startswith("Error")]
        return (errors or lines or [""])[0 if errors else -1]


@dataclass(slots=True)
class Jobs:
    program: tuple[str, ...]
    changed: Callable[[], None]
    _known: dict[str, Job] = field(default_factory=dict)  # by name of the cluster, oldest first

    def of(self, name: str) -> Job | None:
        return self._known.get(name)

    def all(self) -> tuple[Job, ...]:
        return tuple(self._known.values())

    def forget(self, name: str) -> None:
        self._known.pop(name, None)

    def begin(self, name: str, verb: Verb, *arguments: str, config: str = "") -> Job:
        """The one before of this cluster must have ended. Raises OSError."""
        folder = Path(tempfile.mkdtemp(prefix="gpupool-console-"))  # mode 0700
        command = [*self.program, *arguments]
        if config:
            file = folder / "cluster.yaml"
            file.write_text(config, encoding="utf-8")
            command += ["--config", str(file)]
        try:
            process = _started(command, folder / "output")
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        job = Job(name, verb, folder)
        self._known.pop(name, None)
        for each in list(self._known.values())[: max(0, len(self._known) + 1 - _MOST)]:
            if not each.is_running:
                self.forget(each.name)
        self._known[name] = job
        job.task = asyncio.create_task(self._follow(job, process), name=f"console-job-{name}")
        self.changed()
        return job

    async def _follow(self, job: Job, process: subprocess.Popen[bytes]) -> None:
        # Not asyncio's subprocesses: those are killed when the event loop ends.
        while True:
            code = process.poll()  # before reading, so that nothing is missed at the end
            text = _read(job.folder / "output")
            if text != job.text or code is not None:
                job.text, job.code = text, code
                self.changed()
            if code is not None:
                shutil.rmtree(job.folder, ignore_errors=True)
                return
            await asyncio.sleep(_LOOK_EVERY_S)


def _started(command: list[str], output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as file:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=os.sep,
            start_new_session=True,  # Ctrl-C is for the console
        )


def _read(output: Path) -> str:
    try:
        with output.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _MOST_BYTES))
            return _CONTROL.sub("", file.read().decode(errors="replace"))
    except OSError:
        return ""
