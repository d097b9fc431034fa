"""Platform: the clusters of the console's owner, and the way to make one on this machine.

The console imports neither the local platform nor the command line. Whoever starts it hands these
functions in (`cli/console_platform.py`), and only for an owner who signs in with the key: a console
that serves others has no platform (docs/decisions/0037-clusters-from-the-console.md).
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from kubeclient.client import Kube

RUNNING, STOPPED = "Running", "Stopped"


@dataclass(frozen=True, slots=True)
class Known:
    """A cluster that can be looked at."""

    key: str  # in addresses
    name: str
    is_local: bool  # runs on this machine; else it is a context of the kubeconfig
    state: str = ""  # of a local one: Running, Starting, Stopping, Stopped
    mark: str = ""  # changes when another cluster has got the name
    server: str = ""


@dataclass(frozen=True, slots=True)
class Quota:
    name: str  # as `gpupool quota set` takes it
    limit: int
    used: int = 0  # by all clusters, where they share it
    by_cluster: int = 0  # what one more cluster takes


@dataclass(frozen=True, slots=True)
class OwnMachine:
    """An instance that exists, as `gpupool machines` lists it."""

    name: str
    instance_type: str
    cluster: str = ""  # empty: it is free
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Instances:
    found: tuple[OwnMachine, ...] = ()
    problem: str = ""  # why they are not known, in words; empty: they are


@dataclass(frozen=True, slots=True)
class MachineDesk:
    """The instances that exist. Each function reads files: not for the event loop."""

    known: Callable[[], Instances]
    # Instance type, names, how many more; and the name. They return what is wrong, in words.
    add: Callable[[str, tuple[str, ...], int], str]
    remove: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Platform:
    known: Callable[[], tuple[Known, ...]]  # reads files: not for the event loop
    opened: Callable[[str], AbstractAsyncContextManager[Kube]]  # by key; raises KubeError
    quotas: Callable[[], tuple[Quota, ...]]  # reads files
    local_key: Callable[[str], str]  # the key that a local cluster of that name has
    desk: MachineDesk | None = None
    # Starts `gpupool`, with arguments; empty: no clusters can be made on this machine.
    program: tuple[str, ...] = ()
