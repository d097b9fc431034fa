"""A way to an API server on which requests, answers and watches get lost, at random.

    with faulty_proxy(url, ca_file, seed=6) as proxy:
        ...           # a client is told proxy.url and proxy.ca_file in place of the server's
    proxy.injected    # how often each fault was

It is a process of its own. What becomes of a request follows from the seed, its method and path,
and how often that was asked before; not from who else asks at the same time.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import random
import signal
import ssl
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import aiohttp
from aiohttp import web

from testbed import certificates
from testbed.processes import Child, wait_until

_START_SECONDS = 60.0
_WITHHELD_S = 40.0  # longer than any client waits
_WATCH_S = (0.2, 5.0)  # so long it lasts
_LATE_S = (0.0, 0.0, 0.3, 1.5)  # so late are its events, each of these as often as the others
_MOST_BYTES = 64 * 1024**2
# Of what is passed on.
_ASKED = ("Authorization", "Accept", "Content-Type", "User-Agent")
_ANSWERED = ("Content-Type", "Content-Encoding", "Retry-After")


class Fault(StrEnum):
    NONE = "none"
    CONFLICT = "409"
    BUSY = "429"
    BROKEN = "500"
    GONE = "410"
    BROKEN_AFTERWARDS = "500, but it has happened"
    ASKED_TWICE = "asked twice, by somebody on the way"
    LOST_REQUEST = "lost request"
    LOST_ANSWER = "lost answer"
    WITHHELD = "answer withheld"
    CUT = "watch cut"
    CUT_IN_A_LINE = "watch cut in the middle of an event"


# How often, of a hundred.
Odds = Mapping[Fault, int]
WRITES: Odds = {
    Fault.CONFLICT: 5,
    Fault.BUSY: 5,
    Fault.BROKEN: 5,
    Fault.BROKEN_AFTERWARDS: 5,
    Fault.ASKED_TWICE: 3,
    Fault.LOST_REQUEST: 4,
    Fault.LOST_ANSWER: 5,
    Fault.WITHHELD: 1,
}
READS: Odds = {Fault.BUSY: 5, Fault.BROKEN: 5, Fault.LOST_ANSWER: 4}
WATCHES: Odds = {Fault.GONE: 5, Fault.BROKEN: 5, Fault.CUT: 45, Fault.CUT_IN_A_LINE: 45}

_REFUSALS = {
    Fault.CONFLICT: (409, "Conflict"),
    Fault.BUSY: (429, "TooManyRequests"),
    Fault.BROKEN: (500, "InternalError"),
    Fault.BROKEN_AFTERWARDS: (500, "InternalError"),
    Fault.GONE: (410, "Expired"),
}


@dataclass(frozen=True)
class FaultyProxy:
    """What a client is told in place of the server's."""

    url: str
    ca_file: Path
    injected: dict[str, int] = field(default_factory=dict)  # when it has ended


@contextlib.contextmanager
def faulty_proxy(url: str, ca_file: Path, *, seed: int) -> Iterator[FaultyProxy]:
    with tempfile.TemporaryDirectory(prefix="gpupool-proxy-") as name:
        folder, log = Path(name), Path(name, "log")
        certificates.write_all(folder)
        command = [sys.executable, "-m", "testbed.faulty_proxy", url, str(ca_file), str(seed), name]
        child = Child("faulty proxy", command, log)
        try:
            wait_until(lambda: log.read_text().endswith("\n"), child, _START_SECONDS)
            proxy = FaultyProxy(log.read_text().strip(), folder / "ca.crt")
            yield proxy
        finally:
            child.stop()
        proxy.injected.update(json.loads(log.read_text().splitlines()[-1]))


class _Server:
    def __init__(self, url: str, seed: str, session: aiohttp.ClientSession) -> None:
        self.injected: collections.Counter[Fault] = collections.Counter()
        self._upstream = url
        self._seed = seed
        self._session = session
        self._asked: collections.Counter[str] = collections.Counter()

    def _fault(self, request: web.Request) -> tuple[Fault, random.Random]:
        asked = f"{request.method} {request.path}"
        self._asked[asked] += 1
        draw = random.Random(f"{self._seed} {asked} {self._asked[asked]}")
        odds = READS if request.method == "GET" else WRITES
        if request.query.get("watch"):
            odds = WATCHES
        rest = 100 - sum(odds.values())
        (fault,) = draw.choices([*odds, Fault.NONE], [*odds.values(), rest])
        self.injected[fault] += 1
        return fault, draw

    async def answer(self, request: web.Request) -> web.StreamResponse:
        fault, draw = self._fault(request)
        try:
            if fault in (Fault.CUT, Fault.CUT_IN_A_LINE):
                return await self._watch(request, fault, draw)
            return await self._call(request, fault)
        except aiohttp.ClientError:  # the server itself is gone for a while
            return _hang_up(request)

    async def _call(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault is Fault.LOST_REQUEST:
            return _hang_up(request)
        if fault in _REFUSALS and fault is not Fault.BROKEN_AFTERWARDS:
            return _refusal(fault)
        answer = await self._forwarded(request)
        if fault is Fault.ASKED_TWICE:
            answer = await self._forwarded(request)
        if fault is Fault.WITHHELD:
            await asyncio.sleep(_WITHHELD_S)
        if fault in (Fault.WITHHELD, Fault.LOST_ANSWER):
            return _hang_up(request)
        return _refusal(fault) if fault is Fault.BROKEN_AFTERWARDS else answer

    async def _forwarded(self, request: web.Request) -> web.Response:
        async with self._session.request(
            request.method,
            self._upstream + request.path_qs,
            headers=_only(request.headers, _ASKED),
            data=await request.read(),
        ) as answer:
            headers = _only(answer.headers, _ANSWERED)
            return web.Response(body=await answer.read(), status=answer.status, headers=headers)

    async def _watch(
        self, request: web.Request, fault: Fault, draw: random.Random
    ) -> web.StreamResponse:
        clock = asyncio.get_running_loop().time
        cut_s, late_s = clock() + draw.uniform(*_WATCH_S), draw.choice(_LATE_S)
        url, headers = self._upstream + request.path_qs, _only(request.headers, _ASKED)
        async with self._session.get(url, headers=headers) as answer:
            begun = web.StreamResponse(
                status=answer.status, headers=_only(answer.headers, _ANSWERED)
            )
            await begun.prepare(request)
            # Without an event to break off it ends a second later.
            spare_s = 1.0 if fault is Fault.CUT_IN_A_LINE else 0.0
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout_at(cut_s + spare_s):
                    async for chunk in answer.content.iter_any():
                        await asyncio.sleep(late_s)
                        if clock() > cut_s:
                            await begun.write(chunk[: len(chunk) // 2])
                            break
                        await begun.write(chunk)
        return _hang_up(request, begun)


def _only(headers: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: headers[name] for name in names if name in headers}


def _refusal(fault: Fault) -> web.Response:
    code, reason = _REFUSALS[fault]
    status = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": "injected by a test",
    }
    headers = {"Content-Type": "application/json"}
    if fault is Fault.BUSY:
        headers["Retry-After"] = "1"
    return web.Response(body=json.dumps(status), status=code, headers=headers)


def _hang_up(request: web.Request, begun: web.StreamResponse | None = None) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return begun or web.Response()


async def _serve(url: str, ca_file: str, seed: str, folder: Path) -> None:
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    trusted = ssl.create_default_context(cafile=ca_file)
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(folder / "server.crt", folder / "server.key")
    connector = aiohttp.TCPConnector(limit=0, ssl=trusted)
    async with aiohttp.ClientSession(
        connector=connector, timeout=aiohttp.ClientTimeout(), auto_decompress=False
    ) as session:
        server = _Server(url, seed, session)
        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_route("*", "/{path:.*}", server.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=shown).start()
        print(f"https://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await end.wait()
        await runner.cleanup()
    print(json.dumps(server.injected), flush=True)


if __name__ == "__main__":
    _, _url, _ca_file, _seed, _folder = sys.argv
    asyncio.run(_serve(_url, _ca_file, _seed, Path(_folder)))
