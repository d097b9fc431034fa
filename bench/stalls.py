"""How long one request holds all other clients, and how much memory it leaves behind.

    python -m bench.stalls [WORD ...]     only the requests whose names contain one of the words

A second client asks for a small object every few milliseconds; its slowest answer, less what it
takes on an idle server, is the time that others were held. Memory is the resident memory of the
server's process. All requests are in bench/heavy.py.
"""

import http.client
import ssl
import statistics
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import orjson

from bench.apiserver import Served, server
from bench.heavy import Heavy, requests, with_many_objects

_PROBE = "/api/v1/namespaces/default/configmaps/probe"
_EVERY_S = 0.003
_SETTLE_S = 1.0
_MANY = 20_000
_PATIENCE_S = 60.0  # then the request counts as held for that long, and the server is killed


class Client:
    """One connection, opened again when the server has closed it."""

    def __init__(self, address: Mapping[str, Any]) -> None:
        trust = ssl.create_default_context(cafile=address["ca"])
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", address["port"], context=trust, timeout=_PATIENCE_S
        )
        self._token = address["token"]

    def call(self, heavy: Heavy) -> tuple[int, int]:
        """The status, and how many bytes the answer has."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": heavy.media,
            "Accept": heavy.accept,
        }
        try:
            self._connection.request(heavy.method, heavy.path, heavy.body or None, headers)
            answer = self._connection.getresponse()
            return answer.status, len(answer.read())
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, 0

    def close(self) -> None:
        self._connection.close()


class Prober:
    """Asks again and again, and keeps the slowest answer."""

    def __init__(self, address: Mapping[str, Any]) -> None:
        self._client = Client(address)
        self._ended = threading.Event()
        self.times: list[float] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Prober":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        probe = Heavy("GET", _PROBE)
        while not self._ended.wait(_EVERY_S):
            began = time.perf_counter()
            self._client.call(probe)
            self.times.append(time.perf_counter() - began)


def _one(served: Served, heavy: Heavy) -> dict[str, Any]:
    client = Client(served.address)
    for first in heavy.before:
        client.call(first)
    time.sleep(_SETTLE_S / 4)
    before_mb = served.memory_mb()
    with Prober(served.address) as prober:
        while len(prober.times) < 10:
            time.sleep(_EVERY_S)
        calm = statistics.median(prober.times)
        prober.times.clear()
        began = time.perf_counter()
        status, size = client.call(heavy)
        took = time.perf_counter() - began
        time.sleep(0.05)
    held = max(prober.times, default=took) - calm
    client.close()
    time.sleep(_SETTLE_S)
    return {
        "status": status,
        "answer_bytes": size,
        "took_ms": took * 1000,
        "held_ms": held * 1000,
        "before_mb": before_mb,
        "left_mb": served.memory_mb() - before_mb,
    }


def _fill(served: Served) -> None:
    rows = [("POST", "/api/v1/namespaces", '{"metadata":{"name":"many"}}')]
    served.load(rows, 1)
    path = "/api/v1/namespaces/many/configmaps"
    labels = '"labels":{"a":"b","c":"d"}'
    served.load(
        [
            (
                "POST",
                path,
                f'{{"metadata":{{"name":"m{n}",{labels}}},"data":{{"a":"{"x" * 200}"}}}}',
            )
            for n in range(_MANY)
        ],
        16,
    )


def measure_stalls(words: tuple[str, ...] = ()) -> dict[str, Any]:
    figures: dict[str, Any] = {}

    def wanted(name: str) -> bool:
        return not words or any(word in name for word in words)

    probe = [("POST", _PROBE.rpartition("/")[0], '{"metadata":{"name":"probe"}}')]
    chosen = {name: build for name, build in requests().items() if wanted(name)}
    if chosen:
        with server() as served:
            served.load(probe, 1)
            for name, build in chosen.items():
                figures[name] = _one(served, build())
                _say(name, figures[name])
    with_many = {f"20,000 objects: {name}": h for name, h in with_many_objects().items()}
    if any(map(wanted, with_many)):
        with server() as served:
            served.load(probe, 1)
            _fill(served)
            for name, heavy in with_many.items():
                if wanted(name):
                    figures[name] = _one(served, heavy)
                    _say(name, figures[name])
    return figures


def _say(name: str, row: dict[str, Any]) -> None:
    print(
        f"{name:45} {row['status']:3} {row['answer_bytes']:>10} B "
        f"took {row['took_ms']:8.0f} ms, held {row['held_ms']:8.0f} ms, "
        f"memory {row['before_mb']:6.0f} {row['left_mb']:+7.1f} MB",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(measure_stalls(tuple(sys.argv[1:]))) + b"\n")
