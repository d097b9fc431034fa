"""The streams of one node's pods for the API server: logs, exec, attach and connections
(NodeStreams)."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from kubeclient.objects import Obj
from localkube.kubelet import listening, process_table
from localkube.kubelet.client_streams import AttachStream, start_exec
from localkube.kubelet.container_files import ContainerFiles
from localkube.kubelet.container_log import nano_stamp
from localkube.kubelet.container_run import ContainerRun, Inside
from localkube.kubelet.environment import BadConfig
from localkube.kubelet.log_reading import Gate, Log, read_log
from localkube.kubelet.runtime_process import ProcessRuntime
from localkube.kubelet.settings import TIMER
from localkube.kubelet.state import Container, Pod, Stage
from localkube.kubelet.volume_files import BadVolume
from localkube.node_streams import (
    AttachOptions,
    Connection,
    ExecOptions,
    LogOptions,
    NodeRefusal,
    Process,
)

_CHUNK = 65_536


class TcpConnection:
    """Also of pairs of sockets, which are streams as well."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_CHUNK)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close_write(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.write_eof()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def connected(host: str, port: int) -> TcpConnection:
    """Raises OSError."""
    return TcpConnection(*await asyncio.open_connection(host, port))


@dataclass(frozen=True, slots=True)
class PodStreams:
    """NodeStreams for the pods that `pod_of` finds."""

    pod_of: Callable[[str], Pod | None]
    object_of: Callable[[Pod], Awaitable[Obj | None]]
    runtime: ProcessRuntime
    log_gate: Gate  # of all nodes

    async def logs(self, pod_uid: str, options: LogOptions) -> AsyncIterator[bytes]:
        pod, index = self._find(pod_uid, options.container)
        container = pod.containers[index]
        _check_logs(pod, container, options)
        if pod.runtime == TIMER:
            yield _timer_log(container, timestamps=options.timestamps)
            return
        async for chunk in read_log(self._log(pod, index, options), options, time.time_ns()):
            yield chunk

    async def exec(self, pod_uid: str, options: ExecOptions) -> Process:
        pod, index = self._find(pod_uid, options.container)
        if pod.containers[index].stage is not Stage.RUNNING:
            raise NodeRefusal(f'container not found ("{options.container}")', code=404)
        try:
            inside = await self._inside(pod, index)
            run = self._run(pod, index)
            return await start_exec(self.runtime.execs, inside, options, run.pid if run else 0)
        except (BadConfig, BadVolume) as error:
            text = f'exec: "{options.command[0]}": {error}'
            raise NodeRefusal(f"error executing command in container: {text}") from error

    async def attach(self, pod_uid: str, options: AttachOptions) -> Process:
        pod, index = self._find(pod_uid, options.container)
        run = self._run(pod, index)
        if run is None:
            name = options.container
            if pod.runtime == TIMER:
                raise NodeRefusal(f'container "{name}" is a timer: nothing runs in it', code=400)
            raise NodeRefusal(f'container not found ("{name}")', code=404)
        return AttachStream(run, options)

    async def dial(self, pod_uid: str, port: int) -> Connection:
        pod = self._pod(pod_uid)
        try:
            hosted = self._hosted(pod, port)
            if hosted is not None:
                return TcpConnection(*await asyncio.open_connection(sock=hosted))
            address = await self._address(pod, port)
            if address is None:
                text = f"nothing in pod {pod.namespace}/{pod.name} listens on port {port}"
                raise NodeRefusal(text)
            return await connected(*address)
        except OSError as error:
            text = f"failed to connect to localhost:{port} inside pod {pod.uid}: {error}"
            raise NodeRefusal(text) from error

    def _hosted(self, pod: Pod, port: int) -> socket.socket | None:
        """A connection to a program that is a task of this process. Raises OSError."""
        runs = self.runtime.pods.get(pod.uid)
        found = (
            self.runtime.starter.hosted.connect(run.id, port)
            for run in (runs.runs.values() if runs is not None else ())
        )
        return next((each for each in found if each is not None), None)

    async def _address(self, pod: Pod, port: int) -> tuple[str, int] | None:
        """The address on this machine for a port of the pod."""
        runs = self.runtime.pods.get(pod.uid)
        if runs is None or not runs.runs:
            return None
        if port in runs.ports:
            return "127.0.0.1", runs.ports[port]
        leaders = {run.pid: run.id for run in runs.runs.values() if run.pid}
        reaper = self.runtime.launches.pid
        host = await asyncio.to_thread(_listening_host, leaders, reaper, port)
        return None if host is None else (host, port)

    def _pod(self, uid: str) -> Pod:
        pod = self.pod_of(uid)
        if pod is None:
            raise NodeRefusal(f"pod {uid} is not on this node", code=404)
        return pod

    def _find(self, uid: str, name: str) -> tuple[Pod, int]:
        pod = self._pod(uid)
        for index, container in enumerate(pod.containers):
            if container.name == name:
                return pod, index
        text = f'container "{name}" in pod "{pod.name}" is not available'
        raise NodeRefusal(text, code=400)

    def _run(self, pod: Pod, index: int) -> ContainerRun | None:
        runs = self.runtime.pods.get(pod.uid)
        return None if runs is None else runs.runs.get(index)

    def _log(self, pod: Pod, index: int, options: LogOptions) -> Log:
        settings = self.runtime.settings
        container = pod.containers[index]
        files = ContainerFiles(settings.directory, pod.uid, index, container.restart_count)
        run = self._run(pod, index)
        if run is not None and not options.previous:
            follower = run.output.follower()
            return Log(run.output.log.path, settings.log_files, follower, self.log_gate)
        path = files.log(previous=options.previous)
        if not path.exists() and container.restart_count and not options.previous:
            path = files.log(previous=True)  # the next run has no log yet
        return Log(path, settings.log_files, _no_more, self.log_gate)

    async def _inside(self, pod: Pod, index: int) -> Inside:
        run = self._run(pod, index)
        if run is not None:
            return run.inside
        obj = await self.object_of(pod)
        if obj is None or self.pod_of(pod.uid) is not pod:
            raise NodeRefusal(f"pod {pod.uid} is not on this node", code=404)
        runs = self.runtime.runs_of(pod)
        starter = self.runtime.starter
        await starter.ensure_volumes(pod, runs, obj)
        files = ContainerFiles(self.runtime.settings.directory, pod.uid, index, 0)
        files.make_if_missing()
        inside, _ = await starter.inside(pod, index, runs, obj, files)
        return inside


def _check_logs(pod: Pod, container: Container, options: LogOptions) -> None:
    name = options.container
    if options.previous:
        if container.before is None and container.restart_count == 0:
            text = f'previous terminated container "{name}" in pod "{pod.name}" not found'
            raise NodeRefusal(text, code=400)
        return
    if container.stage in (Stage.WAITING, Stage.STARTING) and container.before is None:
        reason = "ContainerCreating" if container.problem is None else container.problem.reason
        text = f'container "{name}" in pod "{pod.name}" is waiting to start: {reason}'
        raise NodeRefusal(text, code=400)


def _timer_log(container: Container, *, timestamps: bool) -> bytes:
    line = b"This container is a timer: nothing runs in it.\n"
    when = container.started_at or (container.exit.started_at if container.exit else 0.0)
    return nano_stamp(int(when * 10**9)) + b" " + line if timestamps else line


def _listening_host(leaders: dict[int, str], reaper: int, port: int) -> str | None:
    own = set(leaders.values())
    found = process_table.of_containers(leaders, reaper)
    return listening.find((e.pid for container, e in found if container in own), port)


async def _no_more() -> bool:
    return False
