"""The server of metrics: clients that send nothing, or half a request."""

import asyncio

import pytest

from gpupool import health
from gpupool.agent.metrics import Metrics, serving_metrics

PATIENCE_S = 60.0


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nHost: x\r\n"])
async def test_a_client_that_sends_no_request_is_dropped(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_FIRST_REQUEST_LIMIT_S", 0.1)
    async with serving_metrics(Metrics("n").text, 0) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()


async def test_a_client_that_asks_now_and_then_keeps_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "_FIRST_REQUEST_LIMIT_S", 0.1)
    async with serving_metrics(Metrics("n").text, 0) as address, asyncio.timeout(PATIENCE_S):
        asking, writer = await asyncio.open_connection(*address)
        silent, other = await asyncio.open_connection(*address)
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        writer.write(request)
        assert b"200 OK" in await asking.readline()
        await silent.read()  # dropped: so much time has passed
        writer.write(request)
        await asking.readuntil(b"gpupool_driver_up 0.0\n")
        await asking.readuntil(b"gpupool_driver_up 0.0\n")
        for each in (writer, other):
            each.close()
