"""Services of type LoadBalancer: each gets a loopback address and a TCP proxy to its pods.

If this user may not bind a port (below 1024), another port is bound instead. An annotation and an
event of the Service say which one.
"""

import asyncio
import contextlib
import ipaddress
import itertools
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kubeclient.errors import NotFound
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import PODS, SERVICES
from localkube.controllers.endpoints import add_pod_index, selected_pods, target_port
from localkube.controllers.pods import is_active, is_ready
from localkube.controllers.run import Context, Controller, Watch
from localkube.node_streams import Connection

log = logging.getLogger(__name__)

# A connection to a port of a pod: (node, pod uid, port). Raises NodeRefusal or OSError.
Dial = Callable[[str, str, int], Awaitable[Connection]]

_CHUNK = 64 * 1024
_ADDRESSES_TRIED = 250
_SHARED = "127.0.0.1"  # for Services that cannot have an address of their own


@dataclass(slots=True)
class _Front:
    """The listening sockets of one Service."""

    address: str
    annotation: str  # on the service: which port is served on which other port
    servers: dict[int, asyncio.Server] = field(default_factory=dict)  # by the service's port
    bound: dict[int, int] = field(default_factory=dict)  # service port -> port really bound
    turn: "itertools.count[int]" = field(default_factory=itertools.count)

    def close(self) -> None:
        for server in self.servers.values():
            server.close()


def controller(dial: Dial, annotation: str) -> Controller:
    """`annotation` records, on a service, which port is served on which other port."""
    fronts: dict[Key, _Front] = {}

    async def reconcile(key: Key, context: Context) -> float | None:
        service = context.of(SERVICES).get(key[1], key[0])
        wanted = service is not None and service["spec"].get("type") == "LoadBalancer"
        if service is None or not wanted or "deletionTimestamp" in service["metadata"]:
            front = fronts.pop(key, None)
            if front is not None:
                front.close()
            if service is not None:
                await _write(service, {}, _Front("", annotation), context)
            return None
        await _serve(service, key, context, fronts, dial, annotation)
        return None

    return Controller(
        "service-controller",
        (Watch(SERVICES),),
        reconcile,
        reads=(PODS,),
        # One at a time: between the choice of a free address and its use, reconcile awaits.
        workers=1,
        add_indexes=add_pod_index,
    )


async def _serve(
    service: Obj,
    key: Key,
    context: Context,
    fronts: dict[Key, _Front],
    dial: Dial,
    annotation: str,
) -> None:
    ports = [
        port["port"]
        for port in service["spec"].get("ports") or ()
        if port.get("protocol", "TCP") == "TCP"
    ]
    front = fronts.get(key)
    if front is None:
        taken = {other.address for other in fronts.values()}
        address = await _claim_address(service, ports, taken)
        if address is None:
            context.events.event(
                service, WARNING, "SyncLoadBalancerFailed", "no loopback address is free"
            )
            return
        fronts[key] = front = _Front(address, annotation)
    for gone in front.servers.keys() - set(ports):
        front.servers.pop(gone).close()
        front.bound.pop(gone)
    for port in ports:
        if port not in front.servers:
            await _listen(front, port, key, context, dial)
    await _write(service, {"ip": front.address}, front, context)


async def _claim_address(service: Obj, ports: list[int], taken: set[str]) -> str | None:
    """The address that the Service had before a restart, or the first one that is free."""
    known = (service.get("status", {}).get("loadBalancer") or {}).get("ingress") or ()
    said: list[str | None] = [
        service["spec"].get("loadBalancerIP"),
        *(entry.get("ip") for entry in known),
    ]
    wanted = (address for address in said if address and is_loopback(address))
    fresh = (f"127.96.{n // 250}.{n % 250 + 1}" for n in range(_ADDRESSES_TRIED))
    for address in itertools.chain(wanted, fresh):
        if address not in taken and await _is_free(address, ports):
            return address
    return _SHARED if _can_bind(_SHARED) else None


def is_loopback(address: str) -> bool:
    """Whatever a Service asks for, it listens on loopback only: nothing is open to other
    machines."""
    try:
        return ipaddress.IPv4Address(address).is_loopback
    except ValueError:
        return False


def _can_bind(address: str) -> bool:
    """Some systems (macOS) have no loopback address but 127.0.0.1."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


async def _is_free(address: str, ports: list[int]) -> bool:
    if not _can_bind(address):
        return False
    for port in ports:
        try:
            reader_writer = asyncio.open_connection(address, port)
            _, writer = await asyncio.wait_for(reader_writer, 0.2)
        except (OSError, TimeoutError):
            continue
        writer.close()
        return False
    return True


async def _listen(front: _Front, port: int, key: Key, context: Context, dial: Dial) -> None:
    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _forward(reader, writer, lambda: _connect(key, port, front, context, dial))

    service = context.of(SERVICES).get(key[1], key[0])
    for attempt in (port, *_bound_before(service, port, front.annotation), 0):
        try:
            server = await asyncio.start_server(accepted, front.address, attempt)
        except OSError as error:
            log.info("port not bound", extra={"port": attempt, "error": str(error)})
            continue
        front.servers[port] = server
        front.bound[port] = server.sockets[0].getsockname()[1]
        break
    bound = front.bound.get(port)
    if service is not None and bound is not None and bound != port:
        where = f"{front.address}:{bound}"
        text = f"port {port} may not be bound by this user: it is served on {where}"
        context.events.event(service, NORMAL, "LoadBalancerPort", text)


def _bound_before(service: Obj | None, port: int, annotation: str) -> list[int]:
    """The other port on which this port was served before a restart: people have bookmarks."""
    annotations = (service or {}).get("metadata", {}).get("annotations") or {}
    pairs = annotations.get(annotation, "").split(",")
    found = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    number = found.get(str(port), "")
    return [int(number)] if number.isascii() and number.isdigit() and int(number) < 65536 else []


def _tcp_port(service: Obj, port: int) -> Obj | None:
    """Not the UDP port of the same number, which may lead elsewhere."""
    for entry in service["spec"].get("ports") or ():
        if entry["port"] == port and entry.get("protocol", "TCP") == "TCP":
            found: Obj = entry
            return found
    return None


async def _connect(
    key: Key, port: int, front: _Front, context: Context, dial: Dial
) -> Connection | None:
    """Connects to a ready pod, round robin; tries the next pod if one refuses."""
    service = context.of(SERVICES).get(key[1], key[0])
    if service is None:
        return None
    pods = [pod for pod in selected_pods(service, context) if is_active(pod) and is_ready(pod)]
    entry = _tcp_port(service, port)
    if entry is None:  # it has just been taken out
        return None
    start = next(front.turn)
    for offset in range(len(pods)):
        pod = pods[(start + offset) % len(pods)]
        number = target_port(entry, pod)
        if number is None:
            continue
        try:
            return await dial(pod["spec"]["nodeName"], pod["metadata"]["uid"], number)
        except Exception as error:  # noqa: BLE001  # the next pod may accept
            log.debug("pod not reached", extra={"error": str(error)})
    return None


async def _forward(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connect: Callable[[], Awaitable[Connection | None]],
) -> None:
    connection = None
    try:
        connection = await connect()
        if connection is None:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_upload(reader, connection))
            tasks.create_task(_download(connection, writer))
    except* OSError:
        pass  # one side closed the connection
    finally:
        if connection is not None:
            with contextlib.suppress(OSError):
                await connection.close()
        writer.close()


async def _upload(reader: asyncio.StreamReader, connection: Connection) -> None:
    while data := await reader.read(_CHUNK):
        await connection.write(data)
    # Only this direction: the client may have sent all of its request and wait for the answer.
    await connection.close_write()


async def _download(connection: Connection, writer: asyncio.StreamWriter) -> None:
    while data := await connection.read():
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _write(service: Obj, ingress: Obj, front: _Front, context: Context) -> None:
    metadata = service["metadata"]
    moved = {port: real for port, real in front.bound.items() if port != real}
    note = ",".join(f"{port}={real}" for port, real in sorted(moved.items())) or None
    known_note = (metadata.get("annotations") or {}).get(front.annotation)
    if known_note != note:
        change = {"metadata": {"annotations": {front.annotation: note}}}
        with contextlib.suppress(NotFound):
            path = SERVICES.path(metadata["namespace"], metadata["name"])
            await context.kube.patch(path, change)
    wanted = {"ingress": [{**ingress, "ipMode": "VIP"}]} if ingress else {}
    if (service.get("status", {}).get("loadBalancer") or {}) != wanted:
        status = {"status": {"loadBalancer": wanted or None}}
        with contextlib.suppress(NotFound):
            path = SERVICES.path(metadata["namespace"], metadata["name"], "status")
            await context.kube.patch(path, status)
