"""Where the history of a cluster is: the file of a local one, or the collector in the cluster."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gpupool.cli.programs import ask_with_access, has_local_clusters

if TYPE_CHECKING:
    from gpupool.history.pages import History
    from kubeclient.client import Kube

Answer = TypeVar("Answer")


def ask_history(
    work: "Callable[[Kube, History], Awaitable[Answer]]",
    namespace: str,
    doing: str = "Reading the history",
    **where: str,
) -> "Answer":
    """Runs `work` with a client and the history. `namespace`: that of the collector. Errors become
    messages for the user."""
    from gpupool.history.database import NoHistory

    async def found(kube: "Kube", url: str) -> "Answer":
        try:
            return await work(kube, history_of(kube, url, namespace))
        except NoHistory as error:
            raise click.ClickException(
                f"There is no history to read: {error}. A collector writes it once a minute."
            ) from error

    return ask_with_access(found, doing, **where)


def history_of(kube: "Kube", url: str, namespace: str) -> "History":
    """`url`: of the API server."""
    from gpupool.history.pages import ClusterHistory, FileHistory

    path = _local_file(url)
    return ClusterHistory(kube, namespace) if path is None else FileHistory(path)


def _local_file(url: str) -> Path | None:
    if not has_local_clusters():
        return None
    from gpupool.cli.which_cluster import cluster_at
    from gpupool.history.database import FILE

    cluster = cluster_at(url)
    return None if cluster is None else cluster.path / FILE
