"""A pseudo-terminal, and shells in it whose line can be read."""

import fcntl
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

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


class _Kind(NamedTuple):
    command: tuple[str, ...]  # interactive, without the user's own settings
    # What a user has in the start file, and that Ctrl-T shows the line between << and >>. These
    # marks are never in the commands themselves, which the terminal echoes.
    settings: tuple[str, ...]


_KINDS = {
    "bash": _Kind(
        ("bash", "--norc", "--noprofile", "-i"),
        (
            "bind 'set enable-bracketed-paste off'; bind 'set bell-style none'",
            r"""bind -x '"\C-t": printf "<""<%s>>" "$READLINE_LINE"'""",
            "source <(gpupool completion bash)",
        ),
    ),
    "zsh": _Kind(
        ("zsh", "--no-rcs", "-i"),
        (
            "unset zle_bracketed_paste; setopt no_beep; PROMPT=; bindkey -e",
            "autoload -Uz compinit; compinit -u -D",
            'shown() { print -rn -- "<""<$BUFFER>>" }; zle -N shown; bindkey "^T" shown',
            "source <(gpupool completion zsh)",
        ),
    ),
    "fish": _Kind(
        ("fish", "--no-config", "--interactive"),
        (
            "function fish_prompt; end; set -g fish_autosuggestion_enabled 0",
            r"""bind \ct 'printf "<""<%s>>" (commandline)'""",
            "gpupool completion fish | source",
        ),
    ),
}


class Shell:
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
def shell(name: str, environment: Mapping[str, str], folder: Path) -> Iterator[Shell]:
    """An interactive shell with our completion. `gpupool` is that of this Python."""
    kind = _KINDS[name]
    ours, theirs = pty.openpty()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        kind.command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=dict(environment) | {"PATH": path, "TERM": "dumb", "COLUMNS": "500"},
        start_new_session=True,
        # The terminal controls the new session: fish does not start without.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        made = Shell(ours)
        for line in kind.settings:
            made.run(line)
        made.run("echo rea''dy")
        read_until(ours, b"ready")
        yield made
    finally:
        process.kill()
        process.wait()
        os.close(ours)
