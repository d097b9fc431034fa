"""The cluster's node pools as it tells them itself, shown as a table."""

from gpupool.cli.table import table
from gpupool.local.home import ClusterDirectory
from gpupool.local.pool_readiness import pools_when_ready
from kubeclient.objects import Obj

_PATIENCE_S = 5.0  # for the nodes to come up: without them there is little to see
_HEAD = ("POOL", "STATUS", "INSTANCE TYPE", "NODES", "READY")


def pools_when_settled(cluster: ClusterDirectory, port: int) -> str:
    """The table once every pool is active; what there is, if that takes long. Empty when the
    cluster cannot be asked: that is then somebody else's to say."""
    pools = pools_when_ready(cluster.path, port, patience_s=_PATIENCE_S)
    return table(_HEAD, [_row(pool) for pool in pools.found]) if pools and pools.found else ""


def _row(pool: Obj) -> tuple[str, ...]:
    status = pool.get("status", {})
    return (
        pool["metadata"]["name"],
        status.get("phase", "Initializing"),
        pool["spec"]["instanceType"],
        str(status.get("nodes", 0)),
        str(status.get("readyNodes", 0)),
    )
