"""What the console costs while ten pages are open and nothing changes: memory and CPU.

    .venv/bin/python -m bench.console_rest [NODES PODS]

The API server answers from memory, inside the console's process: "before" is with its objects.
"""

import asyncio
import os
import sys
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp

from bench.console import PAGES, StandIn
from gpupool.cli.console import new_model
from gpupool.console.run import ConsoleSettings, run_console
from kubeclient.client import Kube
from kubeclient.objects import Obj

_CARDS = 8
_SETTLE_S, _REST_S = 8.0, 30.0
_FOLLOWED = tuple(page for page in PAGES if page != "map/cards")  # which is data, not a page
_OPEN = 10


def _serve(nodes: int, pods: int, say: Connection) -> None:
    """The console, in a process of its own, with the API server that it asks."""

    async def main() -> None:
        kube, settings = Kube(StandIn(nodes, _CARDS, pods)), ConsoleSettings(key="key")
        await run_console(kube, None, new_model, settings, say.send)

    asyncio.run(main())


async def _at_rest(port: int, pid: int) -> Obj:
    home = f"http://127.0.0.1:{port}"
    jar = aiohttp.CookieJar(unsafe=True)
    before = _resident_mib(pid)
    async with aiohttp.ClientSession(cookie_jar=jar, read_bufsize=2**22) as session:
        async with session.get(f"{home}/?key=key") as answer:
            answer.raise_for_status()
        readers = [
            asyncio.create_task(_follow(session, f"{home}/clusters/cluster/{page}"))
            for page in (_FOLLOWED * 2)[:_OPEN]
        ]
        await asyncio.sleep(_SETTLE_S)
        began_s, began_cpu = time.monotonic(), _cpu_s(pid)
        await asyncio.sleep(_REST_S)
        cpu = (_cpu_s(pid) - began_cpu) / (time.monotonic() - began_s)
        for reader in readers:
            assert not reader.done(), reader
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        return {
            "before MiB": before,
            "with ten pages MiB": _resident_mib(pid),
            "CPU at rest": f"{100 * cpu:.2f} % of a core",
        }


async def _follow(session: aiohttp.ClientSession, url: str) -> None:
    timeout = aiohttp.ClientTimeout(total=None)
    headers = {"Accept": "text/event-stream"}
    async with session.get(url, headers=headers, timeout=timeout) as answer:
        answer.raise_for_status()
        async for _ in answer.content.iter_any():
            pass


def _resident_mib(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(nodes: int, pods: int) -> Obj:
    context = get_context("spawn")
    hears, says = context.Pipe(duplex=False)
    console = context.Process(target=_serve, args=(nodes, pods, says))
    console.start()
    try:
        assert console.pid is not None
        return asyncio.run(_at_rest(hears.recv(), console.pid))
    finally:
        console.terminate()
        console.join()


def main() -> None:
    sizes = [(8, 40), (500, 2_000), (5_000, 20_000)]
    if len(sys.argv) > 1:
        sizes = [(int(sys.argv[1]), int(sys.argv[2]))]
    for nodes, pods in sizes:
        print(f"{nodes} nodes x {_CARDS} cards, {pods} pods: {measure(nodes, pods)}", flush=True)


if __name__ == "__main__":
    main()
