"""A few requests to a cluster with the administrator's rights, for tests that are not async."""

import http.client
import json
import ssl
import time
from collections.abc import Callable

from kubeclient.objects import Obj
from localkube.cluster import Cluster
from localkube.kubeconfig import read_token

PATIENCE_S = 60.0


class Rest:
    def __init__(self, cluster: Cluster) -> None:
        self._port = cluster.port
        self._token = read_token(cluster.kubeconfig)
        self._trust = ssl.create_default_context(cafile=str(cluster.directory / "ca.crt"))

    def get(self, path: str) -> Obj:
        found: Obj = json.loads(self._call("GET", path))
        return found

    def post(self, path: str, body: Obj) -> Obj:
        made: Obj = json.loads(self._call("POST", path, body))
        return made

    def delete(self, path: str) -> None:
        self._call("DELETE", path)

    def text(self, path: str) -> str:
        return self._call("GET", path).decode()

    def ready(self, query: str = "?verbose") -> tuple[int, str]:
        """The status of /readyz, and what it says."""
        status, data = self._send("GET", f"/readyz{query}")
        return status, data.decode()

    def until(self, path: str, reached: Callable[[Obj], bool]) -> Obj:
        deadline = time.monotonic() + PATIENCE_S
        while not reached(found := self.get(path)):
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found

    def text_until(self, path: str, end: str) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := self.text(path)).endswith(end):
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found

    def _call(self, verb: str, path: str, body: Obj | None = None) -> bytes:
        status, data = self._send(verb, path, body)
        assert status < 300, data
        return data

    def _send(self, verb: str, path: str, body: Obj | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=PATIENCE_S, context=self._trust
        )
        try:
            connection.request(
                verb,
                path,
                None if body is None else json.dumps(body),
                {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
