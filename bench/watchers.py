"""Watch fan-out: so many watchers, so many events, and how long until all have seen all."""

import asyncio
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import uvloop

if TYPE_CHECKING:
    from bench.apiserver import Served

_PATH = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion="


async def _watch(job: dict[str, Any], events: int) -> None:
    context = ssl.create_default_context(cafile=job["ca"])
    reader, writer = await asyncio.open_connection("127.0.0.1", job["port"], ssl=context)
    head = (
        f"GET {_PATH}{job['version']} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {job['token']}\r\n\r\n"
    )
    writer.write(head.encode())
    await reader.readuntil(b"\r\n\r\n")
    sys.stdout.buffer.write(b".")
    sys.stdout.flush()
    seen = 0
    while seen < events:
        chunk = await reader.read(1 << 20)
        if not chunk:
            raise SystemExit(f"a watch ended after {seen} events")
        seen += chunk.count(b'{"type":"ADDED"')
    writer.close()


async def _all(job: dict[str, Any]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(job["watchers"]):
            tasks.create_task(_watch(job, job["events"]))


def fan_out(served: "Served", *, watchers: int, events: int) -> dict[str, Any]:
    """Seconds and server CPU from the first write until every watcher has every event."""
    path = "/api/v1/namespaces/default/configmaps"
    body = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"a":"1"}}'
    version = _version(served)
    job = {**served.address, "watchers": watchers, "events": events, "version": version}
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(orjson.dumps(job))
    process.stdin.close()
    process.stdout.read(watchers)  # all of them follow
    cpu_s, began = served.cpu_s(), time.perf_counter()
    requests = [("POST", path, body % f"c{number}") for number in range(events)]
    served.load(requests, 32)
    if process.wait() != 0:
        raise RuntimeError("a watcher missed events")
    return {
        "watchers": watchers,
        "events": events,
        "seconds": time.perf_counter() - began,
        "cpu_s": served.cpu_s() - cpu_s,
    }


def _version(served: "Served") -> str:
    import http.client

    context = ssl.create_default_context(cafile=served.address["ca"])
    connection = http.client.HTTPSConnection("127.0.0.1", served.address["port"], context=context)
    token = {"Authorization": f"Bearer {served.address['token']}"}
    connection.request("GET", "/api/v1/namespaces/default/configmaps", headers=token)
    found: dict[str, Any] = orjson.loads(connection.getresponse().read())
    connection.close()
    return str(found["metadata"]["resourceVersion"])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_all(orjson.loads(sys.stdin.buffer.read())))
