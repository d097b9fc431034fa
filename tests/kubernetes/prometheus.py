"""A real Prometheus while a block runs, and what it answers."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kubeclient.objects import Obj
from testbed.processes import Child, free_port


class Prometheus:
    def __init__(self, server: Child, port: int) -> None:
        self._server = server
        self._port = port

    def answers(self, expression: str, label: str) -> list[tuple[str, str]]:
        """That label and the value of each series; while it starts, none."""
        assert self._server.running, self._server.tail()
        query = urllib.parse.urlencode({"query": expression})
        url = f"http://127.0.0.1:{self._port}/api/v1/query?{query}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                found: list[Obj] = json.load(answer)["data"]["result"]
        except (OSError, KeyError, ValueError):
            return []
        return sorted((each["metric"].get(label, ""), each["value"][1]) for each in found)


@contextmanager
def running(
    program: str, config: str, folder: Path, before: Sequence[str] = ()
) -> Iterator[Prometheus]:
    """`before`: what goes before the command."""
    (folder / "prometheus.yaml").write_text(config)
    port = free_port()
    flags = (
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    server = Child("prometheus", [*before, program, *flags], folder / "prometheus.log")
    try:
        yield Prometheus(server, port)
    finally:
        server.stop()
