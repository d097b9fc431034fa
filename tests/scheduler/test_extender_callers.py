"""Whom the extender answers when it knows its callers."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from gpupool.health import Address
from gpupool.scheduler.extender_program import ExtenderSettings, run_extender
from tests.scheduler.world import POLICY, add_node, candidacy, world
from tests.test_callers import Folder

_CLOSED = ("filter", "prioritize", "preempt", "bind", "inspect", "inspect/n", "nothing")


_OPEN = ("/healthz", "/livez", "/readyz", "/version")


@pytest.mark.parametrize("is_known", [False, True])
async def test_only_known_callers_decide_and_read_the_ledger(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, is_known: bool
) -> None:
    folder = Folder(tmp_path_factory.mktemp("tls"))
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    settings = ExtenderSettings(
        POLICY, Address("127.0.0.1", 0), candidacy("extender", goes_first=True), folder.tls()
    )
    connector = aiohttp.TCPConnector(ssl=folder.caller(folder.callers if is_known else None))
    async with world(tmp_path) as kube, aiohttp.ClientSession(connector=connector) as session:
        await add_node(kube, "n", 1)
        task = asyncio.create_task(run_extender(kube, settings, port.set_result))
        url = f"https://127.0.0.1:{await port}"

        async def status(path: str) -> int:
            async with session.get(url + path) as answer:
                return answer.status

        try:
            async with asyncio.timeout(60):
                while await status("/readyz") != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            assert {await status(each) for each in _OPEN} == {200}
            assert await status("/metrics") == 401, "a token is wanted, with and without"
            found = {await status(f"/gpushare-scheduler/{each}") for each in _CLOSED}
            assert found == ({200, 404, 405} if is_known else {401})
            assert await status("/gpushare-scheduler/inspect") == (200 if is_known else 401)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
