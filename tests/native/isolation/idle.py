"""Programs that stand still after a script, so that tests see what is counted for them."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gpupool.hardware.limiter_region import read_region
from gpupool.hardware.simdriver import read_cards
from tests.native.isolation.limited import Container

MIB = 1 << 20


@contextmanager
def idle_after(
    container: Container, *command: str, extra: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Starts the program, and yields the first line that it prints; it then waits for input."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**container.variables(), **(extra or {})},
    )
    try:
        assert process.stdout
        yield process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


@contextmanager
def idle_script(container: Container, script: str, **extra: str) -> Iterator[str]:
    ending = "\nprint('done', flush=True)\nsys.stdin.read()\n"
    with idle_after(container, sys.executable, "-c", script + ending, extra=extra) as said:
        assert said == "done\n"
        yield said


def counted(container: Container, card: int = 0) -> int:
    """The bytes of the card that the limiter has counted for the container."""
    uuid = read_cards(container.node)[card].uuid
    return sum(use.used_bytes for use in read_region(container.region) if use.uuid == uuid)


def held(container: Container, card: int = 0) -> int:
    """The bytes of the card that living processes hold, as the simulated driver knows it."""
    return sum(process.used_bytes for process in read_cards(container.node)[card].processes)
