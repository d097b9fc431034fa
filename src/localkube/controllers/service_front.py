"""Front: the listening sockets of one Service, each of which forwards connections to its pods."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

from kubeclient.mirror import Key
from kubeclient.resources import SERVICES
from kubeclient.service_links import tcp_ports
from localkube.controllers.endpoints import pods_of, target_port
from localkube.controllers.pods import is_active, is_ready
from localkube.controllers.run import Context
from localkube.forwarding import forward
from localkube.node_streams import Connection

log = logging.getLogger(__name__)

# A connection to a port of a pod: (node, pod uid, port). Raises NodeRefusal or OSError.
Dial = Callable[[str, str, int], Awaitable[Connection]]


class Place(NamedTuple):
    """Where a port of a Service wants to be served."""

    port: int  # of the Service
    address: str
    wanted: int  # the number that people expect


class Front:
    def __init__(self, key: Key, context: Context, dial: Dial) -> None:
        self.bound: dict[Place, int] = {}  # the port that is really bound
        self._key = key
        self._context = context
        self._dial = dial
        self._servers: dict[Place, asyncio.Server] = {}
        self._turn = itertools.count()

    def leave(self, places: Collection[Place]) -> None:
        """Closes those that are not among these."""
        for place in self._servers.keys() - set(places):
            self._servers.pop(place).close()
            del self.bound[place]

    async def listen(self, place: Place, others: Collection[int] = ()) -> bool:
        """On the wanted port, or the first of the others that this user can bind. Whether one was
        bound just now, or long ago."""

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await forward(reader, writer, lambda: self._connect(place.port))

        if place in self._servers:
            return True
        for number in (place.wanted, *others):
            try:
                server = await asyncio.start_server(accepted, place.address, number)
            except OSError as error:
                log.info("port not bound", extra={"port": number, "error": str(error)})
                continue
            self._servers[place] = server
            self.bound[place] = server.sockets[0].getsockname()[1]
            return True
        return False

    async def _connect(self, port: int) -> Connection | None:
        """Connects to a ready pod, round robin; tries the next pod if one refuses."""
        context = self._context
        service = context.of(SERVICES).get(self._key[1], self._key[0])
        ports = tcp_ports(service) if service else ()
        entry = next((each for each in ports if each["port"] == port), None)
        if service is None or entry is None:  # it has just been taken out
            return None
        selected = await pods_of(service, context)
        pods = [pod for pod in selected if is_active(pod) and is_ready(pod)]
        start = next(self._turn)
        for offset in range(len(pods)):
            pod = pods[(start + offset) % len(pods)]
            number = target_port(entry, pod)
            if number is None:
                continue
            try:
                return await self._dial(pod["spec"]["nodeName"], pod["metadata"]["uid"], number)
            except Exception as error:  # noqa: BLE001  # the next pod may accept
                log.debug("pod not reached", extra={"error": str(error)})
        return None
