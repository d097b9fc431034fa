"""Which local cluster a command is about, and what to say of one that does not run.

One rule for all commands: the cluster that --name names; else that of KUBECONFIG, or of the current
context; else the one that runs; and if none runs, the only one there is. Where several are left,
nobody guesses: the command lists them.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

import click

from gpupool.local import DEFAULT_NAME
from gpupool.local.home import ClusterDirectory, Home, home, start_command
from gpupool.local.server_process import Server, running_clusters, running_server


def chosen(name: str) -> ClusterDirectory:
    """For commands of local clusters. `name`: as given; empty: none is. Raises ClickException."""
    place = home()
    if name:
        return place.existing(name)
    return _named_by_environment(place) or only_one(place) or place.existing(DEFAULT_NAME)


def only_one(place: Home) -> ClusterDirectory | None:
    """The one that runs, else the only one there is; None: there is none. Raises ClickException
    where there are several."""
    running = running_clusters(place)
    found = running or place.clusters()
    if len(found) < 2:
        return found[0] if found else None
    names = ", ".join(cluster.name for cluster in found)
    if running:
        raise click.ClickException(
            f"Several clusters run on this machine: {names}. Choose one with --name, or for all "
            "commands with KUBECONFIG."
        )
    raise click.ClickException(
        f"Several clusters are on this machine, and none runs: {names}. Choose one with --name, "
        f"or start one: {start_command(found[0].name)}"
    )


def chosen_running(name: str) -> ClusterDirectory:
    """As `chosen`, for work that begins with something else than a question to the cluster."""
    cluster = chosen(name)
    if running_server(cluster) is None:
        raise click.ClickException(_stopped(cluster))
    return cluster


def kubeconfig_of(name: str) -> str:
    """The kubeconfig of the cluster with this name. Raises ClickException."""
    cluster = home().existing(name)
    if not cluster.kubeconfig.exists():
        raise click.ClickException(_not_started(cluster))
    return str(cluster.kubeconfig)


def only_kubeconfig() -> str:
    """For commands of any cluster, when nothing names one; empty: there is no local cluster."""
    cluster = only_one(home())
    if cluster is None:
        return ""
    return kubeconfig_of(cluster.name)


def why_no_kubeconfig(files: str) -> str:
    """What to say of kubeconfigs of which none exists; empty: one does, or they are of no local
    cluster."""
    place = home()
    paths = [Path(file).absolute() for file in filter(None, files.split(os.pathsep))]
    for path in () if any(path.exists() for path in paths) else paths:
        if path.name == "kubeconfig" and path.parent.parent == place.root / "clusters":
            name = path.parent.name
            cluster = place.find(name)
            if cluster is not None:
                return _not_started(cluster)
            return f'Cluster "{name}" does not exist. Make it with: {start_command(name)}'
    return ""


def why_silent(url: str) -> str:
    """What to say when the API server at this URL did not answer; empty: it is no local cluster's,
    or that runs."""
    cluster = _at(url, home())
    if cluster is None:
        return ""
    server = running_server(cluster)
    if server is None:
        return _stopped(cluster)
    return "" if server.port else _on_its_way(cluster, server)


def cluster_at(url: str) -> ClusterDirectory | None:
    """The local cluster whose API server has this URL."""
    return _at(url, home())


def _stopped(cluster: ClusterDirectory) -> str:
    return f'Cluster "{cluster.name}" is stopped. Start it: {start_command(cluster.name)}'


def _on_its_way(cluster: ClusterDirectory, server: Server) -> str:
    up = start_command(cluster.name)
    return f'Cluster "{cluster.name}" is {server.state.lower()}. Wait until it runs: {up}'


def _not_started(cluster: ClusterDirectory) -> str:
    server = running_server(cluster)
    return _stopped(cluster) if server is None else _on_its_way(cluster, server)


def _named_by_environment(place: Home) -> ClusterDirectory | None:
    """The one whose kubeconfig KUBECONFIG names; or whose entry is the current context, as after
    `gpupool up --merge-kubeconfig`."""
    clusters = place.clusters()
    if not clusters:
        return None
    files = filter(None, os.environ.get("KUBECONFIG", "").split(os.pathsep))
    named = [Path(each).resolve() for each in files]
    for cluster in clusters:
        if cluster.kubeconfig in named:
            return cluster
    from kubeclient.contexts import contexts_of

    contexts = contexts_of(os.environ)
    current = _at(contexts.server, place)
    if current is None:
        return None
    from gpupool.local.merging import context_name

    # Both: the port alone may be somebody else's by now, and the name that of another home.
    return current if context_name(current) == contexts.current else None


def _at(url: str, place: Home) -> ClusterDirectory | None:
    """The cluster with this address. One that runs goes first: ports are given out again."""
    try:
        address = urlsplit(url)
        if address.hostname != "127.0.0.1" or address.port is None:
            return None
    except ValueError:
        return None
    found = [each for each in place.clusters() if each.state().get("port") == address.port]
    return min(found, key=lambda each: running_server(each) is None, default=None)
