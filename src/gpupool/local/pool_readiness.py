"""The node pools of a running cluster, asked of its API server until all their nodes are there."""

import http.client
import json
import ssl
import time
from dataclasses import dataclass
from pathlib import Path

from kubeclient.objects import Obj
from localkube.kubeconfig import read_token

_POOLS = "/apis/gpupool.io/v1alpha1/nodepools"
_LOOK_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class Pools:
    found: list[Obj]

    @property
    def waiting(self) -> list[str]:
        """The names of those whose nodes are not all ready."""
        return [
            pool["metadata"]["name"]
            for pool in self.found
            if pool.get("status", {}).get("phase") != "Active"
        ]


def pools_when_ready(directory: Path, port: int, *, patience_s: float) -> Pools | None:
    """Once every pool is active; as they are, if that takes longer. None when the cluster cannot
    be asked. `directory` is the cluster's, with its kubeconfig and authority."""
    deadline = time.monotonic() + patience_s
    while True:
        pools = _pools(directory, port)
        if pools is None or not pools.waiting or time.monotonic() > deadline:
            return pools
        time.sleep(_LOOK_AGAIN_S)


def _pools(directory: Path, port: int) -> Pools | None:
    connection = None
    try:
        trust = ssl.create_default_context(cafile=str(directory / "ca.crt"))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=trust)
        token = read_token(directory / "kubeconfig")
        connection.request("GET", _POOLS, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return Pools(json.loads(answer.read())["items"]) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        if connection is not None:
            connection.close()
