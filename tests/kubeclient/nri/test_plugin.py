import asyncio
import contextlib
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kubeclient.nri import messages as nri
from kubeclient.nri.plugin import Disconnected, Name, Refused, run_plugin
from kubeclient.wire import decode, encode
from tests.kubeclient.nri.runtime import Runtime, listening

NAME = Name("gpus", "90")
POD = nri.PodSandbox("s1", "p", "uid-1", "default", annotations={"a": "b"})
CONTAINER = nri.Container("c1", "s1", "main", env=("A=1",))


@dataclass(frozen=True)
class Node:
    """What a runtime tells of it: SynchronizeRequest with all of its fields."""

    pods: tuple[nri.PodSandbox, ...] = ()
    containers: tuple[nri.Container, ...] = ()
    more: bool = False


@dataclass
class Recorder:
    """A plugin that writes down what it was told."""

    told: list[object] = field(default_factory=list)
    error: Exception | None = None
    events: tuple[nri.Event, ...] = tuple(nri.Event)

    def configured(self, runtime: str, version: str) -> None:
        self.told.append((runtime, version))

    async def synchronized(self) -> None:
        self.told.append("synchronized")

    async def create(
        self, pod: nri.PodSandbox, container: nri.Container
    ) -> nri.ContainerAdjustment | None:
        if self.error is not None:
            raise self.error
        self.told.append(("create", pod, container))
        return nri.ContainerAdjustment(env=(nri.KeyValue("B", "2"),))

    async def start(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        if self.error is not None:
            raise self.error
        self.told.append(("start", container.id))

    async def removed(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        self.told.append(("removed", container.id))


@contextlib.asynccontextmanager
async def connected(
    tmp_path: Path, plugin: Recorder
) -> AsyncIterator[tuple[Runtime, asyncio.Task[None]]]:
    socket = tmp_path / "nri.sock"
    async with listening(socket) as queue:
        task = asyncio.create_task(run_plugin(socket, NAME, plugin))
        runtime = await queue.get()
        try:
            assert await runtime.accept_registration() == nri.RegisterPluginRequest(*NAME)
            yield runtime, task
        finally:
            runtime.writer.close()
            with contextlib.suppress(Disconnected, asyncio.CancelledError):
                await task


async def test_a_plugin_is_asked_about_what_there_is_and_about_new_containers(
    tmp_path: Path,
) -> None:
    plugin = Recorder()
    async with connected(tmp_path, plugin) as (runtime, _):
        configured = nri.ConfigureRequest("", "containerd", "v1.7.35")
        answer = await runtime.ask("Configure", configured, nri.ConfigureResponse)
        # CreateContainer is event 4, so bit 3.
        assert answer.events & 1 << 3
        await runtime.ask("Synchronize", Node((POD,), (CONTAINER,)), nri.SynchronizeResponse)
        both = nri.ContainerRequest(POD, CONTAINER)
        made = await runtime.ask("CreateContainer", both, nri.CreateContainerResponse)
        await runtime.ask("StartContainer", both, nri.Empty)
        await runtime.ask("RemoveContainer", both, nri.Empty)
    assert made.adjust == nri.ContainerAdjustment(env=(nri.KeyValue("B", "2"),))
    assert plugin.told == [
        ("containerd", "v1.7.35"),
        "synchronized",
        ("create", POD, CONTAINER),
        ("start", "c1"),
        ("removed", "c1"),
    ]


async def test_a_plugin_is_asked_about_no_more_than_it_wants(tmp_path: Path) -> None:
    plugin = Recorder(events=(nri.Event.START_CONTAINER,))
    async with connected(tmp_path, plugin) as (runtime, _):
        answer = await runtime.ask("Configure", nri.ConfigureRequest(), nri.ConfigureResponse)
    assert answer.events == 1 << 5


async def test_older_runtimes_tell_of_starts_and_ends_as_state_changes(tmp_path: Path) -> None:
    plugin = Recorder()
    async with connected(tmp_path, plugin) as (runtime, _):
        for event in (
            nri.Event.START_CONTAINER,
            nri.Event.STOP_POD_SANDBOX,
            nri.Event.STOP_CONTAINER,
        ):
            change = nri.StateChangeEvent(event, POD, CONTAINER)
            await runtime.ask("StateChange", change, nri.Empty)
    assert plugin.told == [("start", "c1"), ("removed", "c1")]


async def test_what_comes_in_parts_is_told_once(tmp_path: Path) -> None:
    plugin = Recorder()
    async with connected(tmp_path, plugin) as (runtime, _):
        first = Node((POD,), more=True)
        assert (await runtime.ask("Synchronize", first, nri.SynchronizeResponse)).more
        rest = Node(containers=(CONTAINER,))
        assert not (await runtime.ask("Synchronize", rest, nri.SynchronizeResponse)).more
    assert plugin.told == ["synchronized"]


@pytest.mark.parametrize("method", ["CreateContainer", "StartContainer"])
@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Refused("card 1 of node a is gone"), 9, "card 1 of node a is gone"),
        (KeyError("secret"), 13, "the plugin failed: KeyError"),
    ],
)
async def test_a_container_that_is_refused_or_breaks_the_plugin_is_not_made(
    tmp_path: Path, method: str, error: Exception, code: int, words: str
) -> None:
    plugin = Recorder(error=error)
    async with connected(tmp_path, plugin) as (runtime, task):
        response = await runtime.ask_raw(method, b"")
        assert response.status == nri.Status(code, words)
        assert not task.done()


@pytest.mark.parametrize(
    ("method", "payload", "code"),
    [("CreateContainer", b"\x08\x01", 3), ("Nonsense", b"", 12), ("RunPodSandbox", b"", 12)],
)
async def test_what_is_not_understood_is_an_answer_and_not_an_end(
    tmp_path: Path, method: str, payload: bytes, code: int
) -> None:
    async with connected(tmp_path, Recorder()) as (runtime, task):
        response = await runtime.ask_raw(method, payload)
        assert response.status is not None
        assert response.status.code == code
        assert not task.done()


async def test_without_a_runtime_the_plugin_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(Disconnected, match=r"nri\.sock: No such file or directory"):
        await run_plugin(tmp_path / "nri.sock", NAME, Recorder())


async def test_a_runtime_that_leaves_ends_the_plugin(tmp_path: Path) -> None:
    async with connected(tmp_path, Recorder()) as (runtime, task):
        runtime.writer.close()
        with pytest.raises(Disconnected, match="ended the connection"):
            await task


async def test_a_peer_that_speaks_no_nri_ends_the_plugin(tmp_path: Path) -> None:
    async with connected(tmp_path, Recorder()) as (runtime, task):
        runtime.writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(Disconnected, match="this is not NRI"):
            await task


async def test_a_registration_that_is_refused_ends_the_plugin(tmp_path: Path) -> None:
    socket = tmp_path / "nri.sock"
    async with listening(socket) as queue:
        task = asyncio.create_task(run_plugin(socket, NAME, Recorder()))
        runtime = await queue.get()
        message = await runtime.receive()
        assert decode(nri.Request, message.data).method == "RegisterPlugin"
        refusal = encode(nri.Response(nri.Status(2, "plugins are disabled")))
        await runtime.send(message._replace(type=2, data=refusal))
        with pytest.raises(Disconnected, match="plugins are disabled"):
            await task


async def test_a_connection_that_is_gone_when_the_plugin_answers_ends_it_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvloop raises a RuntimeError where asyncio's own loop raises an OSError."""
    is_gone = False
    write = asyncio.StreamWriter.write

    def written(writer: asyncio.StreamWriter, data: bytes) -> None:
        if is_gone and is_the_plugins(writer):
            raise RuntimeError("unable to perform operation on <UnixTransport closed=True>")
        write(writer, data)

    plugins: list[asyncio.StreamWriter] = []
    connect = asyncio.open_unix_connection

    async def connecting(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await connect(path)
        plugins.append(writer)
        return reader, writer

    def is_the_plugins(writer: asyncio.StreamWriter) -> bool:
        return writer in plugins

    monkeypatch.setattr(asyncio, "open_unix_connection", connecting)
    monkeypatch.setattr(asyncio.StreamWriter, "write", written)
    async with connected(tmp_path, Recorder()) as (runtime, task):
        is_gone = True
        ask = asyncio.create_task(runtime.ask_raw("Shutdown", b""))
        with pytest.raises(Disconnected, match=r"nri\.sock: the connection is closed"):
            await task
        with pytest.raises(EOFError):
            await ask


@pytest.mark.parametrize("field", [b"\x0a\x00", b"\x12\x00"])
async def test_what_a_node_has_already_is_not_read(
    tmp_path: Path, field: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bytes of a message would be an object of hundreds."""
    read: list[object] = []
    monkeypatch.setattr(nri.PodSandbox, "__init__", lambda self: read.append(self))
    monkeypatch.setattr(nri.Container, "__init__", lambda self: read.append(self))
    plugin = Recorder()
    async with connected(tmp_path, plugin) as (runtime, _):
        await runtime.ask_raw("Synchronize", field * 70_000)
    assert (read, plugin.told) == ([], ["synchronized"])


async def test_parts_that_never_end_take_no_memory(tmp_path: Path) -> None:
    payload = encode(Node((nri.PodSandbox(name="x" * 3_000_000),), more=True))
    plugin = Recorder()
    tracemalloc.start()
    try:
        async with connected(tmp_path, plugin) as (runtime, _):
            for _ in range(40):
                await runtime.ask_raw("Synchronize", payload)
            assert tracemalloc.get_traced_memory()[0] < 4 * len(payload)
    finally:
        tracemalloc.stop()
    assert plugin.told == []
