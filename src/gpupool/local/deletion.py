"""Deletes a cluster: its directory, and its entry in the user's own kubeconfig."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpupool.local.home import CannotUse, Home
from gpupool.local.machines import Machines
from gpupool.local.merging import unmerge
from localkube.data_directory import AlreadyRunning, Lock


@dataclass(frozen=True, slots=True)
class Deleted:
    unmerged: Path | None = None  # the kubeconfig that had an entry of the cluster


def delete_cluster(home: Home, name: str) -> Deleted | None:
    """With its lock, so that no server can start while files are deleted. None: a server has it."""
    with home.alone():
        cluster = home.find(name)
        if cluster is None:
            return Deleted()  # by another command, which was faster
        try:
            lock = Lock(cluster.path)
        except AlreadyRunning:
            return None
        with lock:
            unmerged = unmerge(cluster)
            home.delete(cluster)
            with suppress(CannotUse):  # what a cluster holds that is gone is free in any case
                Machines(home).release(name)
            return Deleted(unmerged)
