"""Asks a running cluster for its node pools until all their nodes are ready."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from gpupool.local.server_process import ask_server
from kubeclient.objects import Obj
from localkube.kubeconfig import read_token

_POOLS = "/apis/gpupool.io/v1alpha1/nodepools"
_LOOK_AGAIN_S = 0.1
_ANSWER_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Pools:
    found: list[Obj]

    @property
    def waiting(self) -> list[str]:
        """The names of pools whose nodes are not all ready."""
        return [
            pool["metadata"]["name"]
            for pool in self.found
            if pool.get("status", {}).get("phase") != "Active"
        ]


def pools_when_ready(directory: Path, port: int, *, patience_s: float) -> Pools | None:
    """The pools once all are active, or as they are after `patience_s`. None when the cluster does
    not answer. `directory` is the cluster's, with its kubeconfig and authority."""
    deadline = time.monotonic() + patience_s
    while True:
        pools = _pools(directory, port)
        if pools is None or not pools.waiting or time.monotonic() > deadline:
            return pools
        time.sleep(_LOOK_AGAIN_S)


def _pools(directory: Path, port: int) -> Pools | None:
    try:
        token = read_token(directory / "kubeconfig")
        answer = ask_server(directory, port, _POOLS, token=token, timeout_s=_ANSWER_LIMIT_S)
        return None if answer is None else Pools(json.loads(answer)["items"])
    except (OSError, ValueError):
        return None
