"""An NRI plugin: connects to the container runtime, and answers what it asks, until the end.

The runtime asks in this order: Configure (which events?), Synchronize (what is there already), then
about each container. It waits for every answer, two seconds unless it is set otherwise, and makes
no other container meanwhile. After that it ends the connection and makes the container *without*
this plugin: whoever must not miss a container needs a second way to hold it back.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from kubeclient.nri.channel import (
    REQUEST,
    RESPONSE,
    RUNTIME_SERVICE,
    BadFrame,
    Incoming,
    Message,
    framed,
)
from kubeclient.nri.messages import (
    ConfigureRequest,
    ConfigureResponse,
    Container,
    ContainerAdjustment,
    ContainerRequest,
    CreateContainerResponse,
    Empty,
    Event,
    PodSandbox,
    RegisterPluginRequest,
    Request,
    Response,
    StateChangeEvent,
    Status,
    SynchronizeRequest,
    SynchronizeResponse,
)
from kubeclient.wire import BadMessage, decode, encode

log = logging.getLogger(__name__)

_Asked = TypeVar("_Asked")

_RUNTIME = "nri.pkg.api.v1alpha1.Runtime"
_PLUGIN = "nri.pkg.api.v1alpha1.Plugin"
_READ_BYTES = 64 * 1024
_MAX_WAITING = 64  # requests that were read and not answered; the runtime sends one at a time
_REGISTRATION_S = 5.0
# The codes of gRPC.
_INVALID, _UNIMPLEMENTED, _REFUSED, _INTERNAL = 3, 12, 9, 13


class Refused(Exception):
    """The container must not be made or started; the text says why, and its user reads it."""


class Disconnected(Exception):
    """There is no runtime that listens, it has ended the connection, or it does not speak NRI."""


class Plugin(Protocol):
    """What a plugin does. Refused may be raised by `create` and `start`."""

    @property
    def events(self) -> Collection[Event]:
        """What it wants to be asked about."""

    def configured(self, runtime: str, version: str) -> None: ...

    async def synchronized(self) -> None:
        """From now on it is asked. What the runtime had before is not told."""

    async def create(self, pod: PodSandbox, container: Container) -> ContainerAdjustment | None:
        """Before the container is made."""

    async def start(self, pod: PodSandbox, container: Container) -> None:
        """After the container was made, before its program starts. containerd does not start one
        that is refused; CRI-O (1.37) writes it into its log, and goes on."""

    async def removed(self, pod: PodSandbox, container: Container) -> None:
        """The container has ended. It may be told more than once."""


class Name(NamedTuple):
    name: str
    order: str  # two digits; plugins are asked in this order


async def run_plugin(socket: Path, name: Name, plugin: Plugin) -> None:
    """Runs until the connection ends. Raises Disconnected."""
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket))
    except OSError as error:
        raise Disconnected(f"{socket}: {error.strerror or error}") from error
    try:
        await _Connection(reader, writer, plugin).run(name)
    except BadFrame as error:
        raise Disconnected(f"{socket}: this is not NRI: {error}") from error
    except OSError as error:
        raise Disconnected(f"{socket}: {error.strerror or error}") from error
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class _Connection:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, plugin: Plugin
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._plugin = plugin
        self._requests: asyncio.Queue[Message] = asyncio.Queue(_MAX_WAITING)
        self._registered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    async def run(self, name: Name) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                # Reading goes on while a request is answered: the answer to our own call may come
                # in between.
                tasks.create_task(self._read())
                tasks.create_task(self._answer())
                tasks.create_task(self._register(name))
        except ExceptionGroup as group:
            raise group.exceptions[0] from group

    async def _register(self, name: Name) -> None:
        call = Request(_RUNTIME, "RegisterPlugin", encode(RegisterPluginRequest(*name)))
        await self._send(Message(RUNTIME_SERVICE, 1, REQUEST, encode(call)))
        try:
            async with asyncio.timeout(_REGISTRATION_S):
                response = await self._registered
        except TimeoutError as error:
            raise Disconnected("the runtime did not answer the registration") from error
        if response.status is not None and response.status.code:
            raise Disconnected(f"the runtime refused the registration: {response.status.message}")

    async def _read(self) -> None:
        incoming = Incoming()
        while data := await self._reader.read(_READ_BYTES):
            for message in incoming.feed(data):
                self._received(message)
        raise Disconnected("the runtime has ended the connection")

    def _received(self, message: Message) -> None:
        if message.connection == RUNTIME_SERVICE:
            if message.type != RESPONSE or message.stream != 1 or self._registered.done():
                raise BadFrame("an answer to nothing that was asked")
            self._registered.set_result(_decoded(Response, message.data))
            return
        if message.type != REQUEST:
            raise BadFrame(f"a message of type {message.type} where requests are expected")
        try:
            self._requests.put_nowait(message)
        except asyncio.QueueFull as error:
            raise BadFrame(f"more than {_MAX_WAITING} requests at once") from error

    async def _answer(self) -> None:
        while True:
            message = await self._requests.get()
            response = await self._response(message.data)
            # A large adjustment can be too long for one message: then the container is refused.
            try:
                await self._send(message._replace(type=RESPONSE, data=encode(response)))
            except BadFrame as error:
                failed = Response(Status(_INTERNAL, f"the answer is too long: {error}"))
                await self._send(message._replace(type=RESPONSE, data=encode(failed)))

    async def _send(self, message: Message) -> None:
        try:
            self._writer.write(framed(message))
        except RuntimeError as error:  # of uvloop, where asyncio's own loop raises an OSError later
            raise ConnectionResetError(0, "the connection is closed") from error
        await self._writer.drain()

    async def _response(self, data: bytes) -> Response:
        """An error is an answer, too: with one, the runtime does not make the container."""
        try:
            request = decode(Request, data)
            method = self._methods().get(request.method) if request.service == _PLUGIN else None
            if method is None:
                text = f"{request.service}/{request.method} is not served"
                return Response(Status(_UNIMPLEMENTED, text))
            return Response(Status(), encode(await method(request.payload)))
        except BadMessage as error:
            return Response(Status(_INVALID, f"not a message of NRI: {error}"))
        except Refused as error:
            return Response(Status(_REFUSED, str(error)))
        except Exception as error:
            log.exception("a request of the container runtime failed")
            return Response(Status(_INTERNAL, f"the plugin failed: {type(error).__name__}"))

    def _methods(self) -> Mapping[str, Callable[[bytes], Any]]:
        return {
            "Configure": self._configure,
            "Synchronize": self._synchronize,
            "Shutdown": self._nothing,
            "CreateContainer": self._create,
            "StartContainer": self._start,
            "StopContainer": self._removed,
            "RemoveContainer": self._removed,
            "StateChange": self._state_change,
        }

    async def _configure(self, payload: bytes) -> ConfigureResponse:
        request = decode(ConfigureRequest, payload)
        self._plugin.configured(request.runtime_name, request.runtime_version)
        return ConfigureResponse(sum(1 << (event - 1) for event in set(self._plugin.events)))

    async def _synchronize(self, payload: bytes) -> SynchronizeResponse:
        request = decode(SynchronizeRequest, payload)
        if not request.more:
            await self._plugin.synchronized()
        return SynchronizeResponse(request.more)

    async def _create(self, payload: bytes) -> CreateContainerResponse:
        request = decode(ContainerRequest, payload)
        return CreateContainerResponse(await self._plugin.create(request.pod, request.container))

    async def _start(self, payload: bytes) -> Empty:
        request = decode(ContainerRequest, payload)
        await self._plugin.start(request.pod, request.container)
        return Empty()

    async def _removed(self, payload: bytes) -> Empty:
        request = decode(ContainerRequest, payload)
        await self._plugin.removed(request.pod, request.container)
        return Empty()

    async def _state_change(self, payload: bytes) -> Empty:
        change = decode(StateChangeEvent, payload)
        if change.event == Event.START_CONTAINER:
            await self._plugin.start(change.pod, change.container)
        elif change.event in (Event.STOP_CONTAINER, Event.REMOVE_CONTAINER):
            await self._plugin.removed(change.pod, change.container)
        return Empty()

    async def _nothing(self, payload: bytes) -> Empty:
        return Empty()


def _decoded(kind: type[_Asked], data: bytes) -> _Asked:
    try:
        return decode(kind, data)
    except BadMessage as error:
        raise BadFrame(str(error)) from error
