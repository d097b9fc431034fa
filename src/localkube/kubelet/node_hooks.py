"""NodeHooks: how a product adds hardware to nodes, and shows it to containers.

A hook is like an OCI hook or an NRI plugin of a container runtime: it is called before a container
starts, and answers with variables, mounts and device files for it.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from kubeclient.kubeletapi.messages import Mount
from kubeclient.objects import Obj
from localkube.kubelet.sandbox import Bind


class StartingContainer(NamedTuple):
    node: str
    spec: Obj  # of the container
    variables: Mapping[str, str]  # its environment so far
    plugin_mounts: tuple[Mount, ...]  # what the node's device plugins answered to Allocate
    own_view: bool  # False: the container sees the machine's files, and binds have no effect
    pod: Obj  # the object; the container's spec is part of it
    id: str  # of the container, as in the pod's status; another one after each restart


class Adjustment(NamedTuple):
    """What the hook adds to a container."""

    variables: Mapping[str, str] = {}
    binds: tuple[Bind, ...] = ()
    device_files: tuple[str, ...] = ()  # names below /dev of this machine


class NodeHooks(Protocol):
    def node_added(self, node: str, instance_type: str) -> bool:
        """Called when a kubelet begins to run a node. True: the node takes device plugins."""

    def adjust(self, container: StartingContainer) -> Adjustment: ...


class NoHooks:
    """No hardware; every node takes device plugins."""

    def node_added(self, node: str, instance_type: str) -> bool:
        return True

    def adjust(self, container: StartingContainer) -> Adjustment:
        return Adjustment()
