"""Services that are reached from outside: loopback addresses, links, and nothing open to others."""

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import PODS, SERVICES
from localkube.controllers import load_balancer
from localkube.controllers.load_balancer import is_loopback
from localkube.controllers.run import run_controllers
from localkube.health import Health
from localkube.names import DEFAULT as NAMES
from localkube.node_streams import Connection, NodeRefusal
from localkube.supervision import Supervisor
from testbed.processes import free_port
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod

PORTS, LINK = NAMES.load_balancer_ports_annotation, NAMES.address_annotation


class Echo:
    """A port of a pod that answers with its name and what it received."""

    def __init__(self, name: str) -> None:
        self._out: asyncio.Queue[bytes] = asyncio.Queue()
        self._out.put_nowait(f"{name}:".encode())

    async def read(self) -> bytes:
        return await self._out.get()

    async def write(self, data: bytes) -> None:
        self._out.put_nowait(data)

    async def close_write(self) -> None:
        self._out.put_nowait(b"")

    async def close(self) -> None:
        self._out.put_nowait(b"")


class Pods:
    """Connects to pods; those in `broken` refuse."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # by uid
        self.broken: set[str] = set()

    async def dial(self, node: str, uid: str, port: int) -> Connection:
        name = self.names[uid]
        if name in self.broken:
            raise NodeRefusal("not today")
        return Echo(f"{name}/{port}")


def service(port: int, **spec: Any) -> Obj:
    full = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": port}], **spec}
    return {"metadata": {"name": "web"}, "spec": full}


async def front(desk: Desk, name: str = "web") -> tuple[str, str]:
    """The address of the Service, and the annotation about other ports."""
    await desk.settle()
    found = await desk.get(SERVICES, name)
    ingress = (found["status"].get("loadBalancer") or {}).get("ingress") or [{"ip": ""}]
    notes = found["metadata"].get("annotations") or {}
    return ingress[0]["ip"], notes.get(PORTS, "")


async def ask(address: str, port: int, text: bytes = b"hi") -> bytes:
    reader, writer = await asyncio.open_connection(address, port)
    writer.write(text)
    writer.write_eof()
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    return answer


async def running(desk: Desk, pods: Pods, name: str) -> None:
    made = await desk.create(PODS, pod(name, "web"))
    pods.names[made["metadata"]["uid"]] = name
    await desk.bind(name, "n")
    await desk.run_pods()


async def test_a_connection_reaches_a_pod_and_comes_back(tmp_path: Path) -> None:
    pods, port = Pods(), free_port()
    async with desk_for(tmp_path, load_balancer.controller(pods.dial, NAMES)) as desk:
        await desk.add_node("n")
        await running(desk, pods, "a")
        await desk.create(SERVICES, service(port, ports=[{"port": port, "targetPort": 80}]))
        address, _ = await front(desk)
        assert address.startswith("127.")
        assert await ask(address, port) == b"a/80:hi"
        await desk.delete(SERVICES, "web")
        await desk.settle()
        with pytest.raises(ConnectionRefusedError):
            await ask(address, port)


async def test_a_udp_port_of_the_same_number_leads_nowhere_else(tmp_path: Path) -> None:
    pods, port = Pods(), free_port()
    ports = [
        {"name": "u", "port": port, "targetPort": 53, "protocol": "UDP"},
        {"name": "t", "port": port, "targetPort": 80},
    ]
    async with desk_for(tmp_path, load_balancer.controller(pods.dial, NAMES)) as desk:
        await desk.add_node("n")
        await running(desk, pods, "a")
        await desk.create(SERVICES, service(port, ports=ports))
        address, _ = await front(desk)
        assert await ask(address, port) == b"a/80:hi"
        # The port goes, and a connection comes before the controller has seen it.
        await desk.patch(SERVICES, "web", {"spec": {"ports": ports[:1]}})
        await desk._catch_up()
        assert await ask(address, port, b"") == b""
        await desk.delete(SERVICES, "web")
        await desk.settle()


async def test_pods_take_turns_and_a_broken_one_is_left_out(tmp_path: Path) -> None:
    pods, port = Pods(), free_port()
    async with desk_for(tmp_path, load_balancer.controller(pods.dial, NAMES)) as desk:
        await desk.add_node("n")
        for name in ("a", "b"):
            await running(desk, pods, name)
        await desk.create(SERVICES, service(port))
        address, _ = await front(desk)
        answers = {await ask(address, port) for _ in range(4)}
        assert {answer.partition(b"/")[0] for answer in answers} == {b"a", b"b"}
        pods.broken.add("a")
        assert {(await ask(address, port))[:1] for _ in range(4)} == {b"b"}
        await desk.delete(SERVICES, "web")
        await desk.settle()


async def test_without_a_pod_the_connection_is_closed(tmp_path: Path) -> None:
    pods, port = Pods(), free_port()
    async with desk_for(tmp_path, load_balancer.controller(pods.dial, NAMES)) as desk:
        await desk.create(SERVICES, service(port))
        address, _ = await front(desk)
        reader, writer = await asyncio.open_connection(address, port)
        assert await reader.read() == b""
        writer.close()
        await desk.delete(SERVICES, "web")
        await desk.settle()


async def test_a_port_that_may_not_be_bound_is_moved_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_server = asyncio.start_server

    async def careful(accepted: Any, host: str, port: int) -> asyncio.Server:
        if port == 80:
            raise PermissionError(13, "Permission denied")
        return await start_server(accepted, host, port)

    monkeypatch.setattr(asyncio, "start_server", careful)
    pods = Pods()
    async with desk_for(tmp_path, load_balancer.controller(pods.dial, NAMES)) as desk:
        await desk.add_node("n")
        await running(desk, pods, "a")
        await desk.create(SERVICES, service(80))
        address, note = await front(desk)
        wanted, _, real = note.partition("=")
        assert wanted == "80"
        made = await desk.get(SERVICES, "web")
        assert int(real) == made["spec"]["ports"][0]["nodePort"]  # no other Service has it
        assert made["metadata"]["annotations"][LINK] == f"http://{address}:{real}"
        assert await ask(address, int(real)) == b"a/80:hi"
        (said,) = desk.events("LoadBalancerPort")
        assert f"{address}:{real}" in said
        await desk.delete(SERVICES, "web")
        await desk.settle()


async def test_a_node_port_answers_on_this_machine_and_is_told_as_a_link(tmp_path: Path) -> None:
    pods = Pods()
    async with desk_for(tmp_path, load_balancer.controller(pods.dial, NAMES)) as desk:
        await desk.add_node("n")
        await running(desk, pods, "a")
        made = await desk.create(SERVICES, service(443, type="NodePort"))
        number = made["spec"]["ports"][0]["nodePort"]
        assert await front(desk) == ("", "")
        assert await ask("127.0.0.1", number) == b"a/443:hi"
        found = await desk.get(SERVICES, "web")
        assert found["metadata"]["annotations"] == {LINK: f"https://127.0.0.1:{number}"}
        await desk.patch(SERVICES, "web", {"spec": {"type": "ClusterIP"}})
        await desk.settle()
        with pytest.raises(ConnectionRefusedError):
            await ask("127.0.0.1", number)
        found = await desk.get(SERVICES, "web")
        assert LINK not in (found["metadata"].get("annotations") or {})


async def test_a_node_port_that_another_program_has_is_told(tmp_path: Path) -> None:
    pods, number = Pods(), free_node_port()
    ports = [{"port": 80, "nodePort": number}]
    async with desk_for(tmp_path, load_balancer.controller(pods.dial, NAMES)) as desk:
        with socket.create_server(("127.0.0.1", number)):
            await desk.create(SERVICES, service(80, type="NodePort", ports=ports))
            await desk.settle()
        (said,) = desk.events("NodePortNotBound")
        assert f"port {number} of 127.0.0.1 is in use" in said
        await desk.delete(SERVICES, "web")
        await desk.settle()


def free_node_port() -> int:
    for number in range(30000, 32768):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", number))
            return number
    raise AssertionError("all node ports are in use")


async def test_an_address_of_another_network_is_not_served(tmp_path: Path) -> None:
    pods, port = Pods(), free_port()
    async with desk_for(tmp_path, load_balancer.controller(pods.dial, NAMES)) as desk:
        await desk.create(SERVICES, service(port, loadBalancerIP="0.0.0.0"))
        address, _ = await front(desk)
        assert is_loopback(address)
        await desk.delete(SERVICES, "web")
        await desk.settle()


async def test_where_there_is_one_loopback_address_services_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_balancer, "_can_bind", lambda address: address == "127.0.0.1")
    pods, port = Pods(), free_port()
    async with desk_for(tmp_path, load_balancer.controller(pods.dial, NAMES)) as desk:
        await desk.create(SERVICES, service(port))
        second = service(port)
        second["metadata"]["name"] = "second"
        await desk.create(SERVICES, second)
        first_address, first_note = await front(desk)
        second_address, second_note = await front(desk, "second")
        assert first_address == second_address == "127.0.0.1"
        assert sorted([bool(first_note), bool(second_note)]) == [False, True]
        for name in ("web", "second"):
            await desk.delete(SERVICES, name)
        await desk.settle()


def test_only_loopback_addresses_are_ours() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("127.96.3.4")
    for other in ("0.0.0.0", "10.0.0.1", "::1", "localhost", "", "127.0.0.1.example.com"):
        assert not is_loopback(other)


async def test_its_sockets_end_with_the_controllers(tmp_path: Path) -> None:
    pods, port = Pods(), free_port()
    address = "127.0.0.1"
    async with desk_for(tmp_path) as desk:
        await desk.create(SERVICES, service(port, loadBalancerIP=address))
        for _ in range(2):  # the second time it gets the same address again
            controller = load_balancer.controller(pods.dial, NAMES)
            work = run_controllers((controller,), desk.kube, Supervisor(Health()))
            running = asyncio.create_task(work)
            async with asyncio.timeout(60):
                while not await _is_open(address, port):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert not await _is_open(address, port)


async def _is_open(address: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except ConnectionRefusedError:
        return False
    writer.close()
    return True
