"""Node objects, in the shape in which a kubelet posts them. Pure."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network

from kubeclient.names import (
    LABEL_ARCH,
    LABEL_ARCH_BETA,
    LABEL_HOSTNAME,
    LABEL_OS,
    LABEL_OS_BETA,
)
from kubeclient.objects import Obj
from localkube.about import KUBERNETES_VERSION, __version__
from localkube.names import DEFAULT, Names

RUNTIME_VERSION = f"localkube://{__version__}"
_PODS = 110
_DISK_KIB = 120 * 1024 * 1024
_EVICTION_KIB = 100 * 1024  # memory that a kubelet keeps free
_MACHINES = uuid.UUID("6d0f6b5e-3c0c-5c52-9a3e-1f0d8a7b2c11")  # names -> machine ids
_ADDRESSES = IPv4Network("192.168.0.0/16")  # where nodes get their address from
_POD_NETWORKS = IPv4Network("10.0.0.0/8")  # and the pods of each node theirs


@dataclass(frozen=True, slots=True)
class Machine:
    """What a node is made of. Nothing of it is real: containers get what this computer has."""

    name: str
    address: IPv4Address
    pod_network: IPv4Network
    cpus: int = 4
    memory_mib: int = 8192
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Obj, ...] = ()
    provider_id: str = ""
    os_image: str = "localkube"
    kernel_version: str = "6.1.0"


def numbered_machine(number: int, names: Names = DEFAULT) -> Machine:
    """The machine of node-<number>, with addresses of its own."""
    return Machine(
        name=f"node-{number}",
        address=_ADDRESSES[number + 1],
        pod_network=IPv4Network((int(_POD_NETWORKS[(number + 1) << 8]), 24)),
        labels={names.node_label: "nodes"},
    )


def node_object(machine: Machine) -> Obj:
    spec: Obj = {
        "podCIDR": str(machine.pod_network),
        "podCIDRs": [str(machine.pod_network)],
    }
    if machine.provider_id:
        spec["providerID"] = machine.provider_id
    if machine.taints:
        spec["taints"] = list(machine.taints)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "labels": {
                LABEL_ARCH: "amd64",
                LABEL_ARCH_BETA: "amd64",
                LABEL_OS: "linux",
                LABEL_OS_BETA: "linux",
                LABEL_HOSTNAME: machine.name,
                **machine.labels,
            },
            "annotations": dict(machine.annotations),
        },
        "spec": spec,
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": str(machine.address)},
                {"type": "Hostname", "address": machine.name},
            ],
            **_resources(machine),
            "nodeInfo": _node_info(machine),
        },
    }


def says_ready(node: Obj) -> bool:
    """Whether the status of a Node object says that the node is ready."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _resources(machine: Machine) -> Obj:
    memory_kib = machine.memory_mib * 1024
    same = {
        "cpu": str(machine.cpus),
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "pods": str(_PODS),
    }
    return {
        "capacity": {**same, "memory": f"{memory_kib}Ki", "ephemeral-storage": f"{_DISK_KIB}Ki"},
        "allocatable": {
            **same,
            "memory": f"{memory_kib - min(_EVICTION_KIB, memory_kib // 2)}Ki",
            # A kubelet keeps a tenth of the disk free, and states the rest in bytes.
            "ephemeral-storage": str(_DISK_KIB * 1024 * 9 // 10),
        },
    }


def _node_info(machine: Machine) -> Obj:
    machine_id = uuid.uuid5(_MACHINES, machine.name)
    return {
        "architecture": "amd64",
        "bootID": str(uuid.uuid5(machine_id, "boot")),
        "containerRuntimeVersion": RUNTIME_VERSION,
        "kernelVersion": machine.kernel_version,
        # Newer servers give it no meaning, but the type still requires the field.
        "kubeProxyVersion": "",
        "kubeletVersion": KUBERNETES_VERSION,
        "machineID": machine_id.hex,
        "operatingSystem": "linux",
        "osImage": machine.os_image,
        "systemUUID": str(machine_id),
    }
