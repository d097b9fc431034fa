"""A pseudo-terminal, and a bash in it whose line can be read."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_ENTER, _CLEAR, _SHOW = b"\n", b"\x05\x15", b"\x14"


def read_until(descriptor: int, text: bytes | None) -> bytes:
    """All that comes until the text has come; None: until the end."""
    seen = b""
    while text is None or text not in seen:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:  # the other side is closed
            chunk = b""
        if not chunk:
            assert text is None, seen
            break
        seen += chunk
    return seen


class Bash:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def run(self, command: str) -> None:
        os.write(self._descriptor, command.encode() + _ENTER)

    def typed(self, keys: str) -> str:
        """The line after these keys; \t is Tab."""
        os.write(self._descriptor, _CLEAR + keys.encode() + _SHOW)
        seen = read_until(self._descriptor, b">>").decode()
        return seen.partition("<<")[2].partition(">>")[0]


@contextmanager
def bash(environment: Mapping[str, str], folder: Path) -> Iterator[Bash]:
    """An interactive bash with our completion. `gpupool` is that of this Python."""
    ours, theirs = pty.openpty()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=dict(environment) | {"PATH": path, "TERM": "dumb", "COLUMNS": "500"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        made = Bash(ours)
        made.run("bind 'set enable-bracketed-paste off'; bind 'set bell-style none'")
        made.run(r"""bind -x '"\C-t": printf "<""<%s>>" "$READLINE_LINE"'""")
        made.run("source <(gpupool completion bash); echo rea''dy")
        read_until(ours, b"ready")
        yield made
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
