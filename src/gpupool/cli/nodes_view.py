"""The cluster's node pools as it tells them itself: asked of the API server, shown as a table."""

import http.client
import json
import ssl
import time
from typing import Any

from gpupool.cli.home import ClusterDirectory
from gpupool.cli.table import table

_POOLS = "/apis/gpupool.io/v1alpha1/nodepools"
_PATIENCE_S = 5.0  # for the nodes to come up: without them there is little to see
_LOOK_AGAIN_S = 0.1
_HEAD = ("POOL", "STATUS", "INSTANCE TYPE", "NODES", "READY")


def pools_when_settled(cluster: ClusterDirectory, port: int) -> str:
    """The table once every pool is active; what there is, if that takes long. Empty when the
    cluster cannot be asked: that is then somebody else's to say."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        pools = _pools(cluster, port)
        if pools is None:
            return ""
        settled = all(pool.get("status", {}).get("phase") == "Active" for pool in pools)
        if settled or time.monotonic() > deadline:
            return table(_HEAD, [_row(pool) for pool in pools]) if pools else ""
        time.sleep(_LOOK_AGAIN_S)


def _row(pool: dict[str, Any]) -> tuple[str, ...]:
    status = pool.get("status", {})
    return (
        pool["metadata"]["name"],
        status.get("phase", "Initializing"),
        pool["spec"]["instanceType"],
        str(status.get("nodes", 0)),
        str(status.get("readyNodes", 0)),
    )


def _pools(cluster: ClusterDirectory, port: int) -> list[dict[str, Any]] | None:
    from gpupool.localcluster.apiserver.security.kubeconfig import read_token

    connection = None
    try:
        trust = ssl.create_default_context(cafile=str(cluster.path / "ca.crt"))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=trust)
        token = read_token(cluster.kubeconfig)
        connection.request("GET", _POOLS, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        if answer.status != 200:
            return None
        items: list[dict[str, Any]] = json.loads(answer.read())["items"]
        return items
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        if connection is not None:
            connection.close()
