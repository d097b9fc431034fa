"""What `gpupool console` tells its pages about this machine: clusters, quotas, instance types."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from gpupool.cli.programs import default_kubeconfig, has_local_clusters
from gpupool.console.machines import MachineType
from gpupool.console.platform import Instances, Known, MachineDesk, OwnMachine, Platform, Quota

if TYPE_CHECKING:
    from gpupool.local.home import ClusterDirectory
    from gpupool.local.machines import Machines
    from kubeclient.client import Kube


def machines() -> tuple[MachineType, ...]:
    from gpupool.local.config.catalogue import catalogue

    return tuple(
        MachineType(
            each.name,
            each.vcpus,
            each.memory_mib / 1024,
            each.gpu.name if each.gpu else "",
            each.gpu_count,
        )
        for each in catalogue().instance_types.values()
    )


def platform(kubeconfig: str) -> Platform:
    """Of the user who has started the console. `kubeconfig`: as given; empty: that of kubectl."""
    file = kubeconfig or default_kubeconfig()

    def known() -> tuple[Known, ...]:
        local = {_key(each): _known(each) for each in _local()}
        return (*local.values(), *(each for each in _contexts(file) if each.key not in local))

    @contextlib.asynccontextmanager
    async def opened(key: str) -> "AsyncIterator[Kube]":
        from kubeclient.access import NoAccess
        from kubeclient.credentials import find_access
        from kubeclient.errors import NoAnswer
        from kubeclient.https import connected

        own = next((each for each in _local() if _key(each) == key), None)
        where = {"kubeconfig": str(own.kubeconfig)} if own else {"kubeconfig": file, "context": key}
        try:
            access = await find_access(os.environ, **where)  # type: ignore[arg-type]  # only texts
        except NoAccess as error:
            raise NoAnswer(str(error)) from error
        async with connected(access, "gpupool-console") as kube:
            yield kube

    program = (sys.executable, "-m", "gpupool") if has_local_clusters() else ()
    desk = MachineDesk(_machines, _add_machines, _remove_machine) if program else None
    return Platform(known, opened, _quotas, _key_of_name, desk, program)


def _machines() -> Instances:
    from gpupool.local.home import CannotUse, home
    from gpupool.local.machines import Machines

    try:
        found = Machines(home()).all().values()
    except CannotUse as error:
        return Instances(problem=error.message)
    except OSError as error:
        return Instances(problem=str(error))
    return Instances(tuple(OwnMachine(m.name, m.instance_type, m.cluster, m.pool) for m in found))


def _add_machines(instance_type: str, names: tuple[str, ...], count: int) -> str:
    return _changed(lambda machines: machines.add(instance_type, names, count))


def _remove_machine(name: str) -> str:
    return _changed(lambda machines: machines.remove([name]))


def _changed(change: "Callable[[Machines], object]") -> str:
    from gpupool.local.home import CannotUse, home
    from gpupool.local.machines import Machines

    try:
        place = home()
        with place.alone():
            change(Machines(place))
    except CannotUse as error:
        return error.message
    except OSError as error:  # a full disk
        return str(error)
    return ""


def _local() -> "list[ClusterDirectory]":
    if not has_local_clusters():
        return []
    from gpupool.local.home import CannotUse, home

    try:
        return home().clusters()
    except (CannotUse, OSError):  # what is wrong with it, `gpupool clusters` says
        return []


def _known(cluster: "ClusterDirectory") -> Known:
    from gpupool.local.server_process import running_server

    try:
        server = running_server(cluster)
    except OSError:  # it may be being deleted
        server = None
    address = f"https://127.0.0.1:{server.port}" if server and server.port else ""
    return Known(
        key=_key(cluster),
        name=cluster.name,
        is_local=True,
        state=server.state if server else "Stopped",
        mark=_made(cluster),
        server=address,
    )


def _made(cluster: "ClusterDirectory") -> str:
    """When its kubeconfig was written: a new cluster of the same name has another one."""
    try:
        return str(cluster.kubeconfig.stat().st_mtime_ns)
    except OSError:
        return ""


def _key(cluster: "ClusterDirectory") -> str:
    return _key_of_name(cluster.name)


def _key_of_name(name: str) -> str:
    """As its own kubeconfig calls it."""
    from gpupool.local.config.settings import NAMES

    return NAMES.kubeconfig_entry(name)


def _contexts(file: str) -> list[Known]:
    from kubeclient.contexts import contexts_of

    return [Known(name, name, is_local=False) for name in contexts_of(os.environ, file).namespaces]


def _quotas() -> tuple[Quota, ...]:
    from gpupool.local import cloud_use
    from gpupool.local.cluster_setup import current_quotas
    from gpupool.local.config.quotas import quota_rows
    from gpupool.local.config.spec import Quotas
    from gpupool.local.home import CannotUse, home

    used: dict[str, int] = {}
    try:
        quotas, used = current_quotas(home(), Quotas()), cloud_use.used(home())
    except (CannotUse, OSError):
        quotas = Quotas()  # `gpupool up` says what is wrong
    return tuple(
        Quota(name, limit, used.get(name, 0), cloud_use.BY_CLUSTER.get(name, 0))
        for name, limit in quota_rows(quotas)
    )
