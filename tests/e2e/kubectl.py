"""Kubectl: the real program, on a cluster of ours, in a namespace of its own."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

from kubeclient.objects import Obj

PATIENCE_S = 60.0
LONGEST_S = 90.0  # for any one command
_LOOK_EVERY_S = 0.05
T = TypeVar("T")


def eventually(look: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """What `look` gives once that is true; fails with the last it gave."""
    deadline = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s; the last was {found!r}"
        time.sleep(_LOOK_EVERY_S)


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


class KubectlFailed(AssertionError):
    pass


@dataclass(frozen=True)
class Running:
    """A kubectl that goes on: a watch, a followed log, a forwarded port."""

    process: subprocess.Popen[bytes]
    output: Path

    def text(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def shows(self, text: str, within_s: float = PATIENCE_S) -> str:
        """All of the output, once this is in it."""
        eventually(lambda: text in self.text() or self._check_alive(text), within_s)
        return self.text()

    def ends(self, within_s: float = PATIENCE_S) -> int:
        return self.process.wait(within_s)

    def _check_alive(self, text: str) -> bool:
        if self.process.poll() is not None and text not in self.text():
            raise KubectlFailed(f"ended without {text!r}:\n{self.text()}")
        return False


@dataclass(frozen=True)
class Kubectl:
    program: Path
    kubeconfig: Path
    folder: Path  # its home, its cache and its working directory
    namespace: str = "default"

    def run(self, *arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Ended:
        done = subprocess.run(
            self._command(arguments),
            input=stdin,
            env=self._environment() | (env or {}),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
        """What it prints; it must be content."""
        ended = self.run(*arguments, stdin=stdin, env=env)
        if ended.code:
            shown = " ".join(["kubectl", *arguments])
            raise KubectlFailed(f"{shown}\nexit code {ended.code}\n{ended.out}{ended.err}")
        return ended.out

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """What it complains of; it must."""
        ended = self.run(*arguments, stdin=stdin)
        assert ended.code != 0, f"not refused: {ended.out}"
        return ended.err

    def json(self, *arguments: str) -> Obj:
        """The object or list that a command prints."""
        parsed: Obj = json.loads(self(*arguments, "-o", "json"))
        return parsed

    def names(self, *arguments: str) -> list[str]:
        """Names of what `kubectl get` finds, without their kinds."""
        listed = self("get", *arguments, "-o", "name").split()
        return [each.partition("/")[2] for each in listed]

    def field(self, path: str, *arguments: str) -> str:
        """One field of what `kubectl get` finds: field(".spec.replicas", "rs", "a")."""
        return self("get", *arguments, "-o", f"jsonpath={{{path}}}")

    def apply(self, *objects: Obj, flags: tuple[str, ...] = ()) -> str:
        return self("apply", *flags, "-f", "-", stdin=stream_of(*objects))

    def wait(self, condition: str, *what: str, within_s: float = PATIENCE_S) -> str:
        limit = f"--timeout={within_s:.0f}s"
        if condition.startswith("condition=") and all("/" in each for each in what):
            # A controller may not have made it yet, and kubectl does not wait for that.
            self("wait", "--for=create", limit, *what)
        return self("wait", f"--for={condition}", limit, *what)

    @contextmanager
    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> Iterator[Running]:
        """In the background for the length of the block; both its outputs in one."""
        with NamedTemporaryFile(dir=self.folder, prefix="output-") as file:
            process = subprocess.Popen(
                self._command(arguments),
                stdin=stdin,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                cwd=self.folder,
            )
            try:
                yield Running(process, Path(file.name))
            finally:
                process.kill()
                process.communicate()

    def write(self, name: str, *objects: Obj) -> str:
        """A file with these objects, for -f; named relative to where kubectl runs."""
        (self.folder / name).write_text(stream_of(*objects), encoding="utf-8")
        return name

    def within(self, namespace: str) -> "Kubectl":
        return replace(self, namespace=namespace)

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [str(self.program), f"--namespace={self.namespace}", *arguments]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "KUBECONFIG": str(self.kubeconfig),
            "TERM": "dumb",
        }


def stream_of(*objects: Obj) -> str:
    """Several objects as one text that kubectl reads: JSON is YAML too, once --- says so."""
    return "".join(f"---\n{json.dumps(obj)}\n" for obj in objects)
