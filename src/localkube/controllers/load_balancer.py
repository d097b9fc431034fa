"""Services that are reached from outside: LoadBalancers and NodePorts, on loopback addresses.

A LoadBalancer gets an address of its own. If this user may not bind a port there (below 1024), the
number of its node port is bound instead. Node ports answer on 127.0.0.1. Addresses and ports stay
the same over restarts: people have bookmarks. An annotation of the Service has the address that
works, as a link.
"""

import asyncio
import contextlib
import ipaddress
import itertools
import socket
from typing import Protocol

from kubeclient.errors import NotFound
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key, key_of
from kubeclient.objects import Obj
from kubeclient.resources import PODS, SERVICES
from kubeclient.service_links import link, tcp_ports
from localkube.controllers.run import Context, Controller, Watch
from localkube.controllers.selecting import add_pod_index
from localkube.controllers.service_front import Dial, Front, Place
from localkube.names import Names

_ADDRESSES_TRIED = 250
_SHARED = "127.0.0.1"  # for node ports, and for Services that cannot have an address of their own
_OUTSIDE = ("LoadBalancer", "NodePort")
_FAILED = "SyncLoadBalancerFailed"
# Nobody tells when a quota is raised, another cluster has fewer, or an address is free.
_ASK_AGAIN_S = 5.0


# Of thousands of Services, few have one: who asks for one more does not read all.
_BY_BALANCER, _HAS_ONE = "load-balancer", "has-one"


class Balancers(Protocol):
    """Who allows load balancers: a quota, for example."""

    async def more(self, number: int) -> str:
        """Asked before there are so many. Returns why there may not be; empty: there may."""

    async def fewer(self, number: int) -> None:
        """So many are left, or were found at the start."""


class _Services:
    """All Services that are served, by key."""

    def __init__(self, dial: Dial, names: Names, balancers: Balancers | None) -> None:
        self._dial = dial
        self._names = names
        self._balancers = balancers
        self._fronts: dict[Key, Front] = {}
        self._addresses: dict[Key, str] = {}  # of LoadBalancers
        self._told: dict[Key, set[str]] = {}  # events, each once
        # At the start, too: whoever ran before may have ended without a word.
        self._has_news = True

    async def reconcile(self, key: Key, context: Context) -> float | None:
        await self._count(context)
        service = context.of(SERVICES).get(key[1], key[0])
        kind = service["spec"].get("type") if service is not None else ""
        if service is None or kind not in _OUTSIDE or "deletionTimestamp" in service["metadata"]:
            self._forget(key)
            if service is not None:
                await _write(service, context, self._names, "", {}, "")
            await self._count(context)
            return None
        front = self._fronts.setdefault(key, Front(key, context, self._dial))
        why = ""
        if kind != "LoadBalancer":
            self._take_address(key)
            await self._count(context)
        elif key not in self._addresses:
            why = await self._why_no_address(service, key, context)
        if why:
            self._tell(key, context, service, _FAILED, why)
        # Its node ports are served in any case: a balancer would only stand before them.
        await self._listen(front, service, key, context)
        return _ASK_AGAIN_S if why else None

    async def _why_no_address(self, service: Obj, key: Key, context: Context) -> str:
        """Empty: it has one now."""
        if why := await self._asked(key, context):
            return why
        address = await _claim_address(service, set(self._addresses.values()))
        if address is None:
            self._has_news = True
            await self._count(context, but=key)
            return "no loopback address is free"
        self._addresses[key] = address
        return ""

    async def _asked(self, key: Key, context: Context) -> str:
        if self._balancers is None:
            return ""
        return await self._balancers.more(len(self._with_balancer(context) | {key}))

    async def _count(self, context: Context, *, but: Key | None = None) -> None:
        """Tells how many there are, after the last try has failed halfway too."""
        if self._has_news and self._balancers is not None:
            await self._balancers.fewer(len(self._with_balancer(context) - {but}))
        self._has_news = False

    def _with_balancer(self, context: Context) -> set[Key]:
        """Also those that had one before a restart, and whose turn comes later."""
        before = context.of(SERVICES).by(_BY_BALANCER, _HAS_ONE)
        return {*map(key_of, before), *self._addresses}

    def _take_address(self, key: Key) -> None:
        if self._addresses.pop(key, None) is not None:
            self._has_news = True

    def _forget(self, key: Key) -> None:
        self._take_address(key)
        self._told.pop(key, None)
        front = self._fronts.pop(key, None)
        if front is not None:
            front.leave(())

    def end(self) -> None:
        """Or the controllers that start next would find the addresses taken."""
        for key in list(self._fronts):
            self._forget(key)

    async def _listen(self, front: Front, service: Obj, key: Key, context: Context) -> None:
        address = self._addresses.get(key, "")
        outer, inner = [], []
        for entry in tcp_ports(service):
            if address:
                outer.append((Place(entry["port"], address, entry["port"]), entry))
            if entry.get("nodePort"):
                inner.append((Place(entry["port"], _SHARED, entry["nodePort"]), entry))
        front.leave([place for place, _ in (*outer, *inner)])
        for place, entry in outer:
            before = _bound_before(service, place.port, self._names)
            # The node port is a number that no other Service has, and that stays.
            others = [*before, *([entry["nodePort"]] if entry.get("nodePort") else []), 0]
            await front.listen(place, others)
            bound = front.bound.get(place)
            if bound not in (None, place.wanted):
                text = (
                    f"port {place.port} may not be bound by this user: it is served on "
                    f"{address}:{bound}"
                )
                self._tell(key, context, service, "LoadBalancerPort", text, NORMAL)
        for place, _ in inner:
            if not await front.listen(place) and place.wanted not in _on(front, _SHARED):
                text = f"port {place.wanted} of {_SHARED} is in use by another program"
                self._tell(key, context, service, "NodePortNotBound", text)
        moved = {
            p.port: n for p, n in front.bound.items() if p.address == address and n != p.wanted
        }
        found = _link(service, front, address or _SHARED)
        await _write(service, context, self._names, address, moved, found)

    def _tell(
        self, key: Key, context: Context, service: Obj, reason: str, text: str, kind: str = WARNING
    ) -> None:
        told = self._told.setdefault(key, set())
        if text not in told:
            told.add(text)
            context.events.event(service, kind, reason, text)


def controller(dial: Dial, names: Names, balancers: Balancers | None = None) -> Controller:
    services = _Services(dial, names, balancers)
    return Controller(
        "service-controller",
        (Watch(SERVICES),),
        services.reconcile,
        reads=(PODS,),
        # One at a time: between the choice of a free address and its use, reconcile awaits.
        workers=1,
        add_indexes=_add_indexes,
        end=services.end,
    )


def _add_indexes(context: Context) -> None:
    add_pod_index(context)
    context.of(SERVICES).add_index(_BY_BALANCER, _balancer_of)


def _balancer_of(service: Obj) -> tuple[str, ...]:
    if service["spec"].get("type") != "LoadBalancer" or "deletionTimestamp" in service["metadata"]:
        return ()
    return (_HAS_ONE,) if _ingress(service) else ()


def _on(front: Front, address: str) -> set[int]:
    return {number for place, number in front.bound.items() if place.address == address}


def _link(service: Obj, front: Front, address: str) -> str:
    """Of the first port, as a browser takes it; empty: nothing is served."""
    for entry in tcp_ports(service):
        for place, number in front.bound.items():
            if place.port == entry["port"] and place.address == address:
                return link(entry, address, number)
    return ""


async def _claim_address(service: Obj, taken: set[str]) -> str | None:
    """The address that the Service had before a restart, or the first one that is free."""
    ports = [entry["port"] for entry in tcp_ports(service)]
    said: list[str | None] = [
        service["spec"].get("loadBalancerIP"),
        *(entry.get("ip") for entry in _ingress(service)),
    ]
    wanted = (address for address in said if address and is_loopback(address))
    fresh = (f"127.96.{n // 250}.{n % 250 + 1}" for n in range(_ADDRESSES_TRIED))
    for address in itertools.chain(wanted, fresh):
        if address not in taken and await _is_free(address, ports):
            return address
    return _SHARED if _can_bind(_SHARED) else None


def _ingress(service: Obj) -> list[Obj]:
    return (service.get("status", {}).get("loadBalancer") or {}).get("ingress") or []


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


def _bound_before(service: Obj, port: int, names: Names) -> list[int]:
    """The other port on which this port was served before a restart."""
    annotations = service["metadata"].get("annotations") or {}
    pairs = annotations.get(names.load_balancer_ports_annotation, "").split(",")
    found = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    number = found.get(str(port), "")
    return (
        [int(number)]
        if number.isascii() and number.isdigit() and len(number) < 6 and int(number) < 65536
        else []
    )


async def _write(
    service: Obj, context: Context, names: Names, address: str, moved: dict[int, int], link: str
) -> None:
    metadata = service["metadata"]
    known = metadata.get("annotations") or {}
    notes = {
        names.load_balancer_ports_annotation: ",".join(
            f"{port}={real}" for port, real in sorted(moved.items())
        ),
        names.address_annotation: link,
    }
    changed = {key: text or None for key, text in notes.items() if known.get(key, "") != text}
    if changed:
        with contextlib.suppress(NotFound):
            path = SERVICES.path(metadata["namespace"], metadata["name"])
            await context.kube.patch(path, {"metadata": {"annotations": changed}})
    wanted = {"ingress": [{"ip": address, "ipMode": "VIP"}]} if address else {}
    if (service.get("status", {}).get("loadBalancer") or {}) != wanted:
        status = {"status": {"loadBalancer": wanted or None}}
        with contextlib.suppress(NotFound):
            path = SERVICES.path(metadata["namespace"], metadata["name"], "status")
            await context.kube.patch(path, status)
