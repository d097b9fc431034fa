"""What the agent counts, in Prometheus' text form, on the loopback interface."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gpupool.core.gpu import CardHealth, Inventory
from gpupool.hardware.driver import Xid

_MAX_REQUEST_BYTES = 8 * 1024
_REQUEST_LIMIT_S = 5.0


@dataclass(slots=True)
class Metrics:
    node: str
    has_driver: bool | None = None  # None before the first look
    inventory: Inventory = field(default_factory=Inventory)
    xids: Counter[Xid] = field(default_factory=Counter)
    # By namespace and name of the pod, and card: MiB in use.
    overuses: dict[tuple[str, str, str], int] = field(default_factory=dict)
    overuses_begun: int = 0

    def text(self) -> str:
        cards = self.inventory.cards
        return "".join(
            (
                _metric(
                    "gpupool_driver_up",
                    "gauge",
                    "Whether the NVIDIA driver answers.",
                    [({}, int(bool(self.has_driver)))],
                ),
                _metric(
                    "gpupool_card_health",
                    "gauge",
                    "1 for the state that a card is in.",
                    [
                        ({"uuid": card.uuid, "state": state}, int(card.health is state))
                        for card in cards
                        for state in CardHealth
                    ],
                ),
                _metric(
                    "gpupool_card_memory_mib",
                    "gauge",
                    "Memory of a card.",
                    [
                        (
                            {"uuid": card.uuid, "index": str(card.index), "model": card.model},
                            card.memory_mib,
                        )
                        for card in cards
                    ],
                ),
                _metric(
                    "gpupool_card_outside_memory_mib",
                    "gauge",
                    "Memory that programs outside of pods hold.",
                    [({"uuid": card.uuid}, card.outside_mib) for card in cards],
                ),
                _metric(
                    "gpupool_xids_total",
                    "counter",
                    "Errors that the driver reported.",
                    [
                        ({"uuid": xid.uuid, "xid": str(xid.number)}, count)
                        for xid, count in sorted(self.xids.items())
                    ],
                ),
                self._audit(),
            )
        )

    def _audit(self) -> str:
        rows = [
            ({"namespace": namespace, "pod": pod, "uuid": uuid}, used)
            for (namespace, pod, uuid), used in self.overuses.items()
        ]
        return _metric(
            "gpupool_overuse_memory_mib",
            "gauge",
            "What pods hold of a card that hold more than their share.",
            rows,
        ) + _metric(
            "gpupool_overuses_total",
            "counter",
            "How often a pod was found to hold more than its share.",
            [({}, self.overuses_begun)],
        )


def _metric(name: str, kind: str, words: str, rows: Iterable[tuple[dict[str, str], int]]) -> str:
    lines = [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
    for labels, value in rows:
        shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{shown}}} {value}" if shown else f"{name} {value}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


async def serve_metrics(text: Callable[[], str], port: int) -> None:
    """Until cancelled."""
    async with await listen(text, port) as server:
        await server.serve_forever()


async def listen(text: Callable[[], str], port: int) -> asyncio.Server:
    """Answers GET /metrics on the loopback interface."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_REQUEST_LIMIT_S):
                try:
                    request = await reader.readuntil(b"\r\n\r\n")
                except asyncio.LimitOverrunError:
                    request = b""
                writer.write(_response(request, text))
                await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", port, limit=_MAX_REQUEST_BYTES)


def _response(request: bytes, text: Callable[[], str]) -> bytes:
    is_known = request.startswith(b"GET /metrics ")
    body = text().encode() if is_known else b"wanted: GET /metrics\n"
    status = "200 OK" if is_known else "404 Not Found"
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
