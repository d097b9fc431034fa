"""Makes docs/terminal.svg, the recording in the README, out of a real run in a terminal.

Run: python -m tools.terminal_picture (needs kubectl on the PATH; not part of `make docs`).
"""

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from tools.terminal_animation import Typed, animation
from tools.terminal_screen import Screen

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "terminal.svg"
WIDTH, ROWS = 124, 34
TITLE = "gpupool: a cluster with shared GPUs, a pod that waits and why, and a notebook"
STORY = (
    "make up",
    "kubectl get nodes -L aliyun.accelerator/nvidia_name,aliyun.accelerator/nvidia_mem,cgpu",
    "kubectl exec cgpu-test-0 -- nvidia-smi",
    "kubectl exec cgpu-test-no-isolation-0 -- "
    "nvidia-smi --query-gpu=name,memory.total --format=csv",
    "gpupool gpu list",
    "kubectl apply -f examples/notebook-service.yaml",
    "kubectl rollout status deployment tf-notebook",
    "gpupool open tf-notebook --no-browser",
    "kubectl create deployment greedy --image=pause --replicas=3",
    "kubectl set resources deployment greedy --limits=nvidia.com/gpu=1",
    "gpupool explain $(kubectl get pods -l app=greedy -o name --field-selector spec.nodeName= "
    "| cut -d/ -f2)",
)
# Shows something once the cluster has come so far that the last command has something to explain.
# A person who types is slow enough.
_WAITS = "kubectl get events --field-selector reason=FailedScheduling -o name"
_PROMPT = "$ "
_TYPING_S, _LONGEST_TYPING_S = 0.035, 1.6
_BEFORE_TYPING_S = 0.6
_LONGEST_WAIT_S = 0.7  # of a command that works in silence: longer waits are cut
_READING_S, _READING_A_ROW_S, _LONGEST_READING_S = 0.8, 0.12, 4.0
_AT_THE_END_S = 6.0
_PATIENCE_S = 120.0


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="gpupool-") as home:
        environment = {
            "HOME": home,
            "GPUPOOL_HOME": f"{home}/gpupool",
            "KUBECONFIG": f"{home}/gpupool/clusters/default/kubeconfig",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "COLUMNS": str(WIDTH),
        }
        try:
            picture = _recorded(environment, home)
        finally:
            subprocess.run(["gpupool", "down"], env=environment, check=True)
    PICTURE.write_text(picture, encoding="utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1000} kB")


def _recorded(environment: dict[str, str], home: str) -> str:
    screen, typed, now = Screen(WIDTH), list[Typed](), 0.0
    for command in STORY:
        if command == STORY[-1]:
            _wait_for_output(_WAITS, environment)
        row = screen.row
        screen.write(f"\x1b[32m{_PROMPT}\x1b[0m", now)
        now += _BEFORE_TYPING_S
        began, now = now, now + min(_LONGEST_TYPING_S, len(command) * _TYPING_S)
        screen.write(f"\x1b[1m{command}\x1b[0m\r\n", began)
        typed += _covered(command, row, began, now)
        for waited, text in _run(command, environment):
            now += min(waited, _LONGEST_WAIT_S)
            screen.write(text.replace(f"{home}/gpupool", "~/.local/state/gpupool"), now)
        reading = _READING_S + (screen.row - row) * _READING_A_ROW_S
        now += min(reading, _LONGEST_READING_S)
    return animation(screen, typed, TITLE, ROWS, now + _AT_THE_END_S)


def _wait_for_output(command: str, environment: dict[str, str]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not subprocess.check_output(command.split(), env=environment):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{command} shows nothing")
        time.sleep(0.1)


def _covered(command: str, row: int, from_s: float, to_s: float) -> Iterator[Typed]:
    """A command that is longer than a row goes on in the next one."""
    first = WIDTH - len(_PROMPT)
    parts = [command[:first], *(command[n : n + WIDTH] for n in range(first, len(command), WIDTH))]
    a_letter = (to_s - from_s) / len(command)
    for number, part in enumerate(parts):
        until_s = from_s + len(part) * a_letter
        yield Typed(row + number, 0 if number else len(_PROMPT), len(part), from_s, until_s)
        from_s = until_s


def _run(command: str, environment: dict[str, str]) -> Iterator[tuple[float, str]]:
    """What the command writes to its terminal, each piece with the seconds since the last one."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, WIDTH, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
        env=environment,
        cwd=ROOT,
        start_new_session=True,
    )
    os.close(its)
    decoder = codecs.getincrementaldecoder("utf-8")()
    last = time.monotonic()
    try:
        while select.select([ours], [], [], _PATIENCE_S)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            now = time.monotonic()
            yield now - last, decoder.decode(piece)
            last = now
    finally:
        os.close(ours)
    if process.wait(_PATIENCE_S):
        raise RuntimeError(f"{command} ended with exit code {process.returncode}")


if __name__ == "__main__":
    main()
