"""Turns the flags of `gpupool up` into a cluster directory that a server can start on.

Everything is checked before anything is created: cluster file, names, the user's kubeconfig,
quotas, port. So a start that is refused leaves nothing behind.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gpupool.contract.yaml_document import MAX_BYTES
from gpupool.local import DEFAULT_NAME
from gpupool.local.cloud_use import BY_CLUSTER, ServiceQuota, used
from gpupool.local.config.cluster_file import (
    ClusterFile,
    default_cluster_text,
    parse_cluster,
    report,
)
from gpupool.local.config.quotas import (
    Exceeded,
    changes_from_environment,
    exceeded_clusters,
    exceeded_nodes,
    exceeded_use,
    with_changes,
)
from gpupool.local.config.settings import LocalSettings
from gpupool.local.config.spec import Quotas
from gpupool.local.home import (
    CannotUse,
    ClusterDirectory,
    Home,
    check_name,
    make_private,
)
from gpupool.local.machines import ClusterMachines, Machines, Wanted
from gpupool.local.merging import verify
from gpupool.local.ports import choose_port
from gpupool.local.server_process import Server, running_server
from gpupool.local.wall import require_wall
from kubeclient.yaml_text import not_utf8
from localkube.data_directory import AlreadyRunning, Lock, write_private

SIMULATED_GPUS, REAL_GPUS = "simulated", "real"
SANDBOX_AUTO, SANDBOX_REQUIRED = "auto", "required"


@dataclass(frozen=True, slots=True)
class Wish:
    """The flags of `gpupool up`."""

    name: str | None = None
    config: Path | None = None
    port: int | None = None
    data_dir: Path | None = None
    gpus: str | None = None  # simulated or real
    sandbox: str | None = None  # auto or required
    merge_kubeconfig: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cluster that can be started."""

    cluster: ClusterDirectory
    settings: LocalSettings


@dataclass(frozen=True, slots=True)
class Running:
    """A cluster that is running already."""

    cluster: ClusterDirectory
    server: Server


@dataclass(frozen=True, slots=True)
class Claimed:
    """A cluster that can be started, and by nobody else: we have its lock."""

    prepared: Prepared
    lock: Lock


@contextmanager
def claimed(
    home: Home, wish: Wish, *, for_child: bool = False, inherited: int | None = None
) -> Iterator[Claimed | Running]:
    """As `set_up_directory`, and takes the cluster's lock, which the caller keeps after the block.
    In the block no other command can begin: a caller that takes the lock for a process of its own
    starts it there (`for_child` and `inherited`: as for Lock)."""
    with home.alone():
        found = _set_up(home, wish, is_ours=inherited is not None)
        if isinstance(found, Running):
            yield found
            return
        try:
            lock = Lock(found.cluster.path, inherited=inherited, for_child=for_child)
        except AlreadyRunning as error:  # a server that is not one of gpupool's
            raise CannotUse(f"{error} `gpupool down` stops it.") from error
        except OSError as error:
            raise CannotUse(
                f"{error.filename}: {error.strerror}. Put back what was there, or remove it."
            ) from error
        try:
            yield Claimed(found, lock)
        except BaseException:
            lock.close()
            raise


def set_up_directory(home: Home, wish: Wish) -> Prepared | Running:
    """Finds the cluster or creates its directory. Raises CannotUse, with nothing created."""
    # From the count of clusters to the new directory, no other command may create one.
    with home.alone():
        return _set_up(home, wish, is_ours=False)


def _set_up(home: Home, wish: Wish, *, is_ours: bool) -> Prepared | Running:
    """`is_ours`: if its lock is held, then for us."""
    given = _read(wish.config) if wish.config else None
    file = _parse(given, str(wish.config)) if given is not None else None
    name = check_name(_name(wish, file))
    if wish.merge_kubeconfig:
        verify(name)
    cluster = home.find(name)
    if cluster and wish.data_dir and wish.data_dir.resolve() != cluster.path:
        raise CannotUse(
            f'Cluster "{name}" lives in {cluster.path}, not in {wish.data_dir}. '
            "Leave --data-dir out, or choose another --name."
        )
    if cluster and not is_ours and (server := running_server(cluster)):
        return Running(cluster, server)
    text = given if given is not None else _stored(cluster)
    file = file or _parse(text, str(cluster.cluster_file) if cluster else "default cluster")
    _check_quotas(home, file, new=cluster is None)
    sandbox = wish.sandbox or (cluster.state().get("sandbox") if cluster else None) or SANDBOX_AUTO
    if sandbox == SANDBOX_REQUIRED and not is_ours:  # else the command that started us has looked
        require_wall()
    port = choose_port(
        name,
        wanted=wish.port,
        last=cluster.state().get("port") if cluster else None,
        others=_ports_of_others(home, name),
    )
    _claim_machines(home, name, cluster, file, text)
    cluster = cluster or home.make(name, wish.data_dir)
    make_private(cluster.path)  # its permissions may have been changed since it was created
    _reserve(cluster, port)
    if _stored_or_none(cluster) != text:
        write_private(cluster.cluster_file, text.encode())
    settings = _settings(home, cluster, file, text, port)
    gpus = wish.gpus or cluster.state().get("gpus") or SIMULATED_GPUS
    return Prepared(
        cluster,
        replace(
            settings,
            real_gpus=gpus == REAL_GPUS,
            wall_required=sandbox == SANDBOX_REQUIRED,
        ),
    )


def _claim_machines(
    home: Home, name: str, cluster: ClusterDirectory | None, file: ClusterFile, text: str
) -> None:
    """Before the directory is made: nothing is created when one of them is not free."""
    if cluster and cluster.state().get("applied") == fingerprint(text):
        return  # the pools are as they are in the API server, and its controller sees to machines
    wanted = [
        Wanted(pool.name, pool.instance_type.name, pool.machines)
        for pool in file.spec.pools
        if pool.machines
    ]
    try:
        Machines(home).claim(name, wanted, is_new=cluster is None)
    except CannotUse as error:
        if wanted:  # else a damaged file is no reason not to start
            raise CannotUse(f"Nothing was started.\n{error.message}") from error


def _ports_of_others(home: Home, name: str) -> set[int]:
    found: set[int] = set()
    for each in home.clusters():
        with suppress(CannotUse):  # a damaged file is the other cluster's trouble
            state = each.state() if each.name != name else {}
            found |= {state[key] for key in ("port", "reserved") if state.get(key)}
    return found


def _reserve(cluster: ClusterDirectory, port: int) -> None:
    """Another cluster that is set up before this one listens must not choose the same port."""
    state = cluster.state()
    if port and port not in (state.get("port"), state.get("reserved")):
        cluster.write_state(state | {"reserved": port})


def _name(wish: Wish, file: ClusterFile | None) -> str:
    if wish.name is not None:
        return wish.name
    return (file.name if file else "") or DEFAULT_NAME


def fingerprint(text: str) -> str:
    """Identifies a cluster file: tells whether it is the one that was applied last."""
    return hashlib.sha256(text.encode()).hexdigest()


def current_quotas(home: Home, base: Quotas) -> Quotas:
    """`base`, changed first by `gpupool quota set` and then by environment variables."""
    changes = changes_from_environment(os.environ)
    if isinstance(changes, str):
        raise CannotUse(changes)
    return with_changes(base, home.quota_changes() | changes)


def _settings(
    home: Home, cluster: ClusterDirectory, file: ClusterFile, text: str, port: int
) -> LocalSettings:

    def quotas() -> Quotas:
        """Read again at each use, so that `gpupool quota set` takes effect without a restart."""
        return current_quotas(home, file.spec.quotas)

    return LocalSettings(
        name=cluster.name,
        data_dir=cluster.path,
        port=port,
        spec=file.spec,
        quotas=quotas,
        services=ServiceQuota(home, cluster.path, quotas),
        apply_spec=cluster.state().get("applied") != fingerprint(text),
        machines=ClusterMachines(Machines(home), cluster.name),
    )


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            # One byte more than allowed, so that the parser notices a file that is too large.
            data = file.read(MAX_BYTES + 1)
        return data.decode()
    except UnicodeDecodeError as error:
        raise CannotUse(f"{path}: {not_utf8(error)}") from error
    except OSError as error:
        raise CannotUse(
            f"{path}: wanted a cluster file that you may read, found: {error.strerror}."
        ) from error


def _stored(cluster: ClusterDirectory | None) -> str:
    return (_stored_or_none(cluster) if cluster else None) or default_cluster_text()


def _stored_or_none(cluster: ClusterDirectory) -> str | None:
    return _read(cluster.cluster_file) if cluster.cluster_file.exists() else None


def _parse(text: str, source: str) -> ClusterFile:
    file = parse_cluster(text)
    if isinstance(file, ClusterFile):
        return file
    count = "1 problem" if len(file) == 1 else f"{len(file)} problems"
    raise CannotUse(f"{count} in the cluster file; nothing was changed.\n{report(file, source)}")


def _check_quotas(home: Home, file: ClusterFile, *, new: bool) -> None:
    quotas = current_quotas(home, file.spec.quotas)
    nodes = sum(pool.count for pool in file.spec.pools)
    over: list[Exceeded] = [*exceeded_nodes(quotas, existing=0, more=nodes)]
    if new:
        over += exceeded_clusters(quotas, existing=len(home.clusters()))
        over += exceeded_use(quotas, used=used(home), more=BY_CLUSTER)
    if over:
        raise CannotUse("\n".join(["Nothing was started.", *map(str, over)]))
