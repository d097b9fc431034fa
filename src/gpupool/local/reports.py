"""Reports of a starting server to the command that started it: JSON lines through a pipe.

Any number of {"step": "..."}, then {"ready": port} or {"failed": "..."}. If the stream ends without
either, the server has crashed.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Step:
    text: str


@dataclass(frozen=True, slots=True)
class Ready:
    port: int


@dataclass(frozen=True, slots=True)
class Failed:
    text: str


Report: TypeAlias = Step | Ready | Failed


class Listener(Protocol):
    def __call__(self, report: Report) -> None: ...


def write_to(descriptor: int) -> Listener:
    """Writes reports to a pipe. Errors are ignored: if the command that started the server was
    interrupted, nobody reads the pipe, and the server is to run on."""

    def write(report: Report) -> None:
        match report:
            case Step(text):
                line: dict[str, Any] = {"step": text}
            case Ready(port):
                line = {"ready": port}
            case Failed(text):
                line = {"failed": text}
        try:
            os.write(descriptor, json.dumps(line).encode() + b"\n")
            if not isinstance(report, Step):
                os.close(descriptor)
        except OSError:
            return

    return write


def read_lines(chunks: Iterator[bytes]) -> Iterator[Report]:
    buffer = b""
    for chunk in chunks:
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            yield _decode(line)


def _decode(line: bytes) -> Report:
    match json.loads(line):
        case {"step": str(text)}:
            return Step(text)
        case {"ready": int(port)}:
            return Ready(port)
        case {"failed": str(text)}:
            return Failed(text)
        case other:
            raise ValueError(f"not a report: {other}")
