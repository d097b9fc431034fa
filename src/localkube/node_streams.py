"""What an API server asks of a node: logs, exec, attach and port-forward, as byte streams.

The API server finds the node of a pod and speaks Kubernetes' protocols with the client; the node
knows the processes. Rules for whoever implements `NodeStreams`:

- A "no" is a `NodeRefusal`, raised by the call itself (`logs`: by the first step of the iteration).
- Reads give bytes as soon as there are some; writes return once there is room, so that a slow
  reader on one side slows the writer on the other and nothing piles up in between.
- Any call may be cancelled, and any iterator closed (`aclose`) early: the client has left.
"""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol

import msgspec


class NodeRefusal(Exception):
    """The node cannot do it. `message` is for the user; `code` is the HTTP code that fits."""

    def __init__(self, message: str, *, code: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Checked by the API server: counts are not negative, at most one of the `since`s is set."""

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_seconds: int | None = None
    since_time: datetime | None = None  # with a time zone


class ExecOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which streams the client wants. A tty merges stderr into stdout, so `stderr` is off then."""

    container: str
    command: tuple[str, ...]
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class AttachOptions(msgspec.Struct, frozen=True, kw_only=True):
    container: str
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Process(Protocol):
    """A process in a container with a client at its streams.

    `stdout` and `stderr` are iterated at the same time, each once; they end when the process has
    closed its side and all output has been read. A stream that was not asked for ends at once.
    """

    def stdout(self) -> AsyncIterator[bytes]: ...

    def stderr(self) -> AsyncIterator[bytes]: ...

    async def write_stdin(self, data: bytes) -> None:
        """Returns when the data is taken; silently drops it when the process reads no more."""

    async def close_stdin(self) -> None:
        """The client sends no more. Attach: only a container with stdinOnce sees the end."""

    async def resize(self, width: int, height: int) -> None:
        """The client's terminal has this size now, in characters. Nothing without a tty."""

    async def wait(self) -> int:
        """The exit code; 128 + n after signal n."""

    async def hang_up(self) -> None:
        """The client has gone, cleanly or not; called exactly once, last.

        Exec: a process that still runs is hung up (SIGHUP) and soon killed. Attach: the container
        runs on without this client.
        """


class Connection(Protocol):
    """A connection to a port of a pod."""

    async def read(self) -> bytes:
        """Some bytes; empty at the end of the stream or when the peer has reset it."""

    async def write(self, data: bytes) -> None:
        """Raises OSError when the peer is gone."""

    async def close_write(self) -> None:
        """The client sends no more; reading goes on."""

    async def close(self) -> None:
        """At once: what the pod has not read by now is dropped."""


class NodeStreams(Protocol):
    """The streams of the pods of one node. Pods are named by uid: names come back, uids do not."""

    def logs(self, pod_uid: str, options: LogOptions) -> AsyncIterator[bytes]: ...

    async def exec(self, pod_uid: str, options: ExecOptions) -> Process: ...

    async def attach(self, pod_uid: str, options: AttachOptions) -> Process: ...

    async def dial(self, pod_uid: str, port: int) -> Connection:
        """Only ports that the pod declares or that its processes listen on; others are refused."""
