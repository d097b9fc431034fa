"""The agent's HTTP endpoint: what it answers, and clients that send nothing or half a request."""

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import time

import pytest

from gpupool import health
from gpupool.agent import endpoint
from gpupool.agent.endpoint import Pages, on_loopback, serving_on_loopback
from gpupool.agent.metrics import Metrics
from gpupool.core.readings import NodeReadings
from gpupool.hardware.driver import NoDriver, Xid

PATIENCE_S = 60.0


async def no_driver() -> NodeReadings:
    raise NoDriver("there is no driver")


async def hangs() -> NodeReadings:
    await asyncio.Event().wait()
    raise AssertionError


async def some() -> NodeReadings:
    return NodeReadings("n", 1.0, ())


PAGES = Pages("n", Metrics("n").text, some)


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


async def test_it_answers_with_readings_and_metrics() -> None:
    async with serving_on_loopback(PAGES, 0) as address:
        status, text = await asyncio.to_thread(get, address.port, "/readings")
        assert (status, json.loads(text)["node"]) == (200, "n")
        status, text = await asyncio.to_thread(get, address.port, "/metrics")
        assert (status, "gpupool_driver_up" in text) == (200, True)
        status, _ = await asyncio.to_thread(get, address.port, "/else")
        assert status == 404


async def test_without_a_driver_it_says_why_there_are_no_readings() -> None:
    async with serving_on_loopback(Pages("n", Metrics("n").text, no_driver), 0) as address:
        found = await asyncio.to_thread(get, address.port, "/readings")
    assert found == (503, "there is no driver\n")


async def test_a_driver_that_hangs_does_not_keep_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "READ_LIMIT_S", 0.01)
    async with serving_on_loopback(Pages("n", Metrics("n").text, hangs), 0) as address:
        status, text = await asyncio.to_thread(get, address.port, "/readings")
    assert (status, "did not answer" in text) == (503, True)


async def test_it_waits_for_its_port_while_another_program_has_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(endpoint, "_PAUSE_AFTER_FAILURE_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        serving = asyncio.create_task(asyncio.wait_for(on_loopback(port)(PAGES), PATIENCE_S))
        async with asyncio.timeout(PATIENCE_S):
            while "no readings" not in caplog.text:  # noqa: ASYNC110  # a log has no event
                await asyncio.sleep(0)
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            found = await asyncio.to_thread(get, port, "/readings")
            break
        except ConnectionRefusedError:
            assert time.monotonic() < end
    assert found[0] == 200
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nHost: x\r\n"])
async def test_a_client_that_sends_no_request_is_dropped(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_FIRST_REQUEST_LIMIT_S", 0.1)
    async with serving_on_loopback(PAGES, 0) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()


async def test_a_client_that_asks_now_and_then_keeps_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "_FIRST_REQUEST_LIMIT_S", 0.1)
    async with serving_on_loopback(PAGES, 0) as address, asyncio.timeout(PATIENCE_S):
        asking, writer = await asyncio.open_connection(*address)
        silent, other = await asyncio.open_connection(*address)
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        writer.write(request)
        assert b"200 OK" in await asking.readline()
        await silent.read()  # dropped: so much time has passed
        writer.write(request)
        await asking.readuntil(b'gpupool_driver_up{node="n"} 0.0\n')
        await asking.readuntil(b'gpupool_driver_up{node="n"} 0.0\n')
        for each in (writer, other):
            each.close()


async def test_metrics_are_served_on_the_loopback_interface() -> None:
    metrics = Metrics("node-1", has_driver=True)
    metrics.count_xids([Xid("GPU-a", 79)] * 2)
    close = b"Host: localhost\r\nConnection: close\r\n\r\n"
    async with serving_on_loopback(Pages("n", metrics.text, some), 0) as (host, port):
        assert host == "127.0.0.1"
        found = await ask(port, b"GET /metrics HTTP/1.1\r\n" + close)
        assert found.startswith("HTTP/1.1 200 OK\r\n")
        assert 'gpupool_xids_total{node="node-1",uuid="GPU-a",xid="79"} 2.0\n' in found
        assert 'gpupool_driver_up{node="node-1"} 1.0\n' in found
        assert "404 Not Found" in await ask(port, b"GET / HTTP/1.1\r\n" + close)
        assert "400 Bad Request" in await ask(port, b"x" * 100_000)


async def ask(port: int, request: bytes) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer.decode()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_server_is_loaded_when_somebody_connects_and_answers_him(loop: str) -> None:
    """In a process of its own, which has not loaded it for another test."""
    program = f"""
import asyncio, {loop}, http.client, socket, sys
from gpupool.agent.endpoint import Pages, on_loopback
from gpupool.core.readings import NodeReadings

async def some():
    return NodeReadings("n", 1.0, ())

def get(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout={PATIENCE_S})
    connection.request("GET", "/readings")
    return connection.getresponse().status

def is_heard(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0

async def main():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    task = asyncio.create_task(on_loopback(port)(Pages("n", lambda _: "", some)))
    await asyncio.sleep(0)
    print("aiohttp.web" in sys.modules)
    print(await asyncio.gather(*(asyncio.to_thread(get, port) for _ in range(8))))
    print("aiohttp.web" in sys.modules)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    print(await asyncio.to_thread(is_heard, port))

with asyncio.Runner(loop_factory={loop}.new_event_loop) as runner:
    runner.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == f"False\n{[200] * 8}\nTrue\nFalse\n", done.stderr
