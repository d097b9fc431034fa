"""Questions to a whole cluster, from tests that need no more than an answer."""

import contextlib
import http.client
import ssl
import time
from collections.abc import Callable

import orjson

from gpupool.testing import Cluster
from kubeclient.objects import Obj

PATIENCE_S = 60.0  # beside other tests on two cores everything takes its time


def ask(cluster: Cluster, method: str, path: str, body: Obj | None = None) -> tuple[int, Obj]:
    headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"}
    trust = ssl.create_default_context(cafile=str(cluster.ca))
    connection = http.client.HTTPSConnection("127.0.0.1", cluster.port, context=trust, timeout=20)
    with contextlib.closing(connection):
        connection.request(method, path, orjson.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        return answer.status, orjson.loads(answer.read())


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
