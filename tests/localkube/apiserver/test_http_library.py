"""The library for webhooks is loaded beside the loop. In a process that has not loaded it yet."""

import subprocess
import sys

_SCRIPT = """
import asyncio, sys
from tests.faults.loop_watchdog import Watchdog
from localkube.apiserver.http_library import http_library

async def several():
    await asyncio.gather(*(http_library() for _ in range(3)))
    import aiohttp
    aiohttp.ClientSession

async def main():
    assert "aiohttp" not in sys.modules
    with Watchdog().watching() as watchdog:
        await asyncio.ensure_future(several())
    assert not watchdog.stalls, watchdog.stalls
    assert "aiohttp" in sys.modules

asyncio.run(main())
"""


def test_the_first_webhook_keeps_nobody_waiting_for_its_library() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
