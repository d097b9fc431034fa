"""A cluster's entry in the user's own kubeconfig: added on request, removed by `reset`."""

import os
from pathlib import Path

from gpupool.local import kubeconfig_merge
from gpupool.local.config.settings import NAMES
from gpupool.local.home import CannotUse, ClusterDirectory
from localkube.data_directory import write_private
from localkube.kubeconfig import (
    Kubeconfig,
    read_token,
)


def verify(name: str) -> None:
    """Checks that `merge` will work for a cluster of that name, before the cluster is created."""
    try:
        kubeconfig_merge.verify(_path(), name)
    except kubeconfig_merge.KubeconfigError as error:
        raise CannotUse(str(error)) from error


def _path() -> Path:
    return kubeconfig_merge.default_path(os.environ).absolute()


def merge(cluster: ClusterDirectory, port: int) -> Path:
    """Adds the cluster; returns the file it was added to."""
    path = _path()
    entry = Kubeconfig(
        cluster=cluster.name,
        server=f"https://127.0.0.1:{port}",
        ca_pem=(cluster.path / "ca.crt").read_bytes(),
        token=read_token(cluster.kubeconfig),
        names=NAMES,
    )
    try:
        kubeconfig_merge.merge_into(path, entry)
    except kubeconfig_merge.KubeconfigError as error:
        raise CannotUse(str(error)) from error
    # Noted, because KUBECONFIG may name another file when `reset` removes the entry.
    write_private(cluster.merged_file, f"{path}\n".encode())
    return path


def context_name(cluster: ClusterDirectory) -> str:
    return NAMES.kubeconfig_entry(cluster.name)


def verify_unmerge(cluster: ClusterDirectory) -> None:
    """Checks that `unmerge` will work, before the cluster is stopped."""
    path = _merged_into(cluster)
    if path is None:
        return
    try:
        kubeconfig_merge.verify_removal(path)
    except kubeconfig_merge.KubeconfigError as error:
        raise CannotUse(str(error)) from error


def unmerge(cluster: ClusterDirectory) -> Path | None:
    """Removes what `merge` has added; returns the file, or None if nothing was added."""
    path = _merged_into(cluster)
    if path is None:
        return None
    try:
        kubeconfig_merge.remove_from(path, cluster.name)
    except kubeconfig_merge.KubeconfigError as error:
        raise CannotUse(str(error)) from error
    cluster.merged_file.unlink()
    return path


def _merged_into(cluster: ClusterDirectory) -> Path | None:
    try:
        return Path(cluster.merged_file.read_text(encoding="utf-8").rstrip("\n"))
    except FileNotFoundError:
        return None
