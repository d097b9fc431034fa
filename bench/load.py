"""A load generator: keep-alive TLS connections, each sending its next request when answered.

Runs in a process of its own, so that its CPU is not the server's. As small as it can be: the
server should be the limit.
"""

import asyncio
import ssl
import sys
import time
from collections.abc import Iterator
from typing import Any, cast

import httptools
import orjson
import uvloop


class Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], times: list[float], done: asyncio.Event) -> None:
        self._requests = requests
        self._times = times
        self._done = done
        self._parser = httptools.HttpResponseParser(self)
        self._sent_s = 0.0
        self.failures: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own, of the same shape
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """The parser has seen a whole answer."""
        self._times.append(time.perf_counter() - self._sent_s)
        code = self._parser.get_status_code()
        if code >= 300:
            self.failures.append(f"HTTP {code}")
        self._parser = httptools.HttpResponseParser(self)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._done.set()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            return
        self._sent_s = time.perf_counter()
        self._transport.write(request)


def http(method: str, path: str, token: str, body: bytes = b"") -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"User-Agent: bench/1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def drive(port: int, ca: str, requests: Iterator[bytes], connections: int) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=ca)
    loop = asyncio.get_running_loop()
    times: list[float] = []
    made = []
    began = time.perf_counter()
    for _ in range(connections):
        done = asyncio.Event()
        _, connection = await loop.create_connection(
            lambda done=done: Connection(requests, times, done),  # type: ignore[misc]
            "127.0.0.1",
            port,
            ssl=context,
        )
        made.append((done, connection))
    for done, _ in made:
        await done.wait()
    took_s = time.perf_counter() - began
    times.sort()
    failures = [failure for _, c in made for failure in c.failures]
    return {
        "requests": len(times),
        "seconds": took_s,
        "per_second": len(times) / took_s,
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[int(len(times) * 0.99)] * 1000,
        "longest_ms": times[-1] * 1000,
        "failures": failures[:3],
    }


def main() -> None:
    """Reads one JSON job from standard input, writes the figures to standard output."""
    job = orjson.loads(sys.stdin.buffer.read())
    requests = (
        http(method, path, job["token"], body.encode()) for method, path, body in job["requests"]
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = runner.run(drive(job["port"], job["ca"], requests, job["connections"]))
    sys.stdout.buffer.write(orjson.dumps(figures))


if __name__ == "__main__":
    main()
