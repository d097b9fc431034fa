"""A terminal in which a test types what a document says, line by line.

What a line exports holds for the next lines. A step that does not show what the document shows
fails with all that was typed and shown before it.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile

from tests.e2e.kubectl import eventually

LONGEST_S = 90.0  # for any one line
_KEPT_LINES = 120  # of all that was shown before a step that fails


class StepFailed(AssertionError):
    pass


@dataclass(frozen=True)
class Background:
    """A command that goes on until Ctrl-C."""

    process: subprocess.Popen[bytes]
    output: Path
    line: str

    def shows(self, word: str) -> str:
        """All of its output, once the word is in it."""
        try:
            return eventually(lambda: self._text_with(word))
        except AssertionError:
            text = self.output.read_text(encoding="utf-8", errors="replace")
            raise StepFailed(f"{self.line}\nnever showed {word!r}:\n{text}") from None

    def _text_with(self, word: str) -> str:
        ended = self.process.poll() is not None
        text = self.output.read_text(encoding="utf-8", errors="replace")
        assert word in text or not ended
        return text if word in text else ""


@dataclass
class Terminal:
    folder: Path  # where it begins
    scratch: Path  # for files of the test
    environment: dict[str, str]
    session: list[str] = field(default_factory=list)

    def types(self, line: str, *words: str, stdin: str = "") -> str:
        """Runs the line, which must succeed and show the words. Returns all that it prints."""
        code, shown = self._run(line, stdin)
        if code:
            raise self._failed(f"{line}\nended with exit code {code}.")
        self._check(line, words, shown)
        return shown

    def types_until(self, line: str, *words: str) -> str:
        """For what a document tells to look at until it has come."""

        def look() -> str:
            code, shown = self._run(line, "")
            return shown if not code and all(word in shown for word in words) else ""

        try:
            return eventually(look)
        except AssertionError:
            raise self._failed(f"{line}\nnever showed {words}.") from None

    def is_refused(self, line: str, *words: str, stdin: str = "") -> str:
        """Runs the line, which must fail and say these words."""
        code, shown = self._run(line, stdin)
        if not code:
            raise self._failed(f"{line}\nwas not refused.")
        self._check(line, words, shown)
        return shown

    def tries(self, line: str) -> str:
        """What the line prints, whether it succeeds or not."""
        return self._run(line, "")[1]

    @contextmanager
    def starts(self, line: str) -> Iterator[Background]:
        """For the length of the block; then Ctrl-C."""
        with NamedTemporaryFile(dir=self.scratch, prefix="output-") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.folder,
                start_new_session=True,
            )
            try:
                yield Background(process, Path(file.name), line)
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(LONGEST_S)
                finally:
                    process.kill()
                    process.wait()
                self.session.append(f"$ {line}\n{Path(file.name).read_text('utf-8')}^C")

    def _run(self, line: str, stdin: str) -> tuple[int, str]:
        kept = self.scratch / "environment"
        done = subprocess.run(
            ["bash", "-c", f"{line}\ncode=$?; env -0 > {shlex.quote(str(kept))}; exit $code"],
            input=stdin,
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
        pairs = (each.partition("=") for each in kept.read_text("utf-8").split("\0") if each)
        self.environment = {name: value for name, _, value in pairs}
        self.session.append(f"$ {line}\n{done.stdout}")
        return done.returncode, done.stdout

    def _check(self, line: str, words: tuple[str, ...], shown: str) -> None:
        missing = [word for word in words if word not in shown]
        if missing:
            raise self._failed(f"{line}\ndoes not show {missing}.")

    def _failed(self, what: str) -> StepFailed:
        before = "\n".join(self.session).splitlines()[-_KEPT_LINES:]
        return StepFailed("\n".join([*before, "", what]))


def rows(shown: str, columns: int) -> list[list[str]]:
    """The first columns of a table of kubectl, without its head, and without the lines that a slow
    machine shows before it."""
    lines = [line for line in shown.splitlines() if not line.endswith(" s) ...")]
    return [line.split()[:columns] for line in lines[1:]]


def new_terminal(root: Path, scratch: Path, programs: list[Path]) -> Terminal:
    """Of a user who has just cloned the repository, and whose clusters are in `scratch`."""
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR", "TERM") if name in os.environ}
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    home = scratch / "home"
    home.mkdir()
    return Terminal(
        root,
        scratch,
        kept | {"PATH": path, "HOME": str(home), "GPUPOOL_HOME": str(scratch / "gpupool")},
    )
