"""A pool's nodes as Node objects, in the shape that a kubelet posts them. Pure.

Names and addresses depend only on the pool and on what is already taken, so a cluster that is
made twice has the same nodes. Cards are not in the capacity: the node's agent puts them there.
"""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network
from itertools import count, islice
from json import dumps

from gpupool.contract import names
from gpupool.local.config.spec import InstanceType, Network, NodeNaming, PoolSpec, Role
from kubeclient import names as kube_names
from kubeclient.objects import Obj

POD_PREFIX = 24  # of the pod network that a node gets
PODS_PER_NODE = 110
_DISK_KIB = 120 * 1024 * 1024
_EVICTION_KIB = 100 * 1024  # memory that a kubelet keeps free
_MACHINES = uuid.UUID("6d0f6b5e-3c0c-5c52-9a3e-1f0d8a7b2c11")  # names -> machine ids
_ID_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
# Instance ids begin with a mark of their region.
_ID_PREFIX = {
    "cn-beijing": "2ze",
    "cn-hangzhou": "bp1",
    "cn-shanghai": "uf6",
    "cn-shenzhen": "wz9",
}


@dataclass(frozen=True, slots=True)
class Versions:
    """What the nodes say that they run."""

    kubelet: str  # "v1.35.0"
    runtime: str  # "gpupool://0.1.0"


@dataclass(slots=True)
class Taken:
    """Names and addresses in use in the cluster; grows as nodes are planned."""

    names: set[str] = field(default_factory=set)
    addresses: set[IPv4Address] = field(default_factory=set)
    reserved: set[IPv4Address] = field(default_factory=set)  # only for the node named after it
    pod_networks: set[IPv4Network] = field(default_factory=set)


class NetworkFull(Exception):
    """There is no address left for another node."""


def taken_by(nodes: Iterable[Obj]) -> Taken:
    taken = Taken()
    for node in nodes:
        taken.names.add(node["metadata"]["name"])
        for address in node.get("status", {}).get("addresses", ()):
            if address["type"] == "InternalIP":
                taken.addresses.add(IPv4Address(address["address"]))
        if cidr := node.get("spec", {}).get("podCIDR"):
            taken.pod_networks.add(IPv4Network(cidr))
    return taken


def new_nodes(
    pool: PoolSpec, more: int, *, network: Network, taken: Taken, versions: Versions
) -> list[Obj]:
    """`more` further nodes of the pool, noted in `taken`."""
    identities = islice(_identities(pool, network, taken), more)
    pods = _free_pod_networks(network, taken)
    return [_node(pool, name, address, next(pods), versions) for name, address in identities]


def cluster_nodes(pools: Iterable[PoolSpec], *, network: Network, versions: Versions) -> list[Obj]:
    """All nodes of a new cluster."""
    pools = tuple(pools)
    taken = Taken()
    for pool in pools:
        taken.reserved.update(_given_addresses(pool))
    return [
        node
        for pool in pools
        for node in new_nodes(pool, pool.count, network=network, taken=taken, versions=versions)
    ]


def _identities(
    pool: PoolSpec, network: Network, taken: Taken
) -> Iterator[tuple[str, IPv4Address]]:
    """Names and addresses for further nodes: those that the pool gives, then generated ones."""
    taken.reserved.update(_given_addresses(pool))
    addresses = _free_addresses(network, taken)
    for name in pool.node_names:
        given = _address_in(name)
        if name in taken.names or given in taken.addresses:
            continue
        taken.names.add(name)
        taken.addresses.add(address := given or next(addresses))
        yield name, address
    for ordinal in count():
        if pool.naming is NodeNaming.ADDRESS:
            address = next(addresses)
            name = f"{pool.region}.{address}"
        else:
            name = f"{pool.region}.{_instance_id(pool, ordinal)}"
            if name in taken.names:
                continue
            address = next(addresses)
        taken.names.add(name)
        yield name, address


def _free_addresses(network: Network, taken: Taken) -> Iterator[IPv4Address]:
    for address in network.nodes.hosts():
        if address not in taken.addresses and address not in taken.reserved:
            taken.addresses.add(address)
            yield address
    raise NetworkFull(
        f"no address is left for a node in {network.nodes}: give the cluster file a larger "
        "network.nodes"
    )


def _free_pod_networks(network: Network, taken: Taken) -> Iterator[IPv4Network]:
    for pods in network.pods.subnets(new_prefix=POD_PREFIX):
        if pods not in taken.pod_networks:
            taken.pod_networks.add(pods)
            yield pods
    raise NetworkFull(
        f"no /{POD_PREFIX} is left for the pods of a node in {network.pods}: give the cluster "
        "file a larger network.pods"
    )


def _given_addresses(pool: PoolSpec) -> Iterator[IPv4Address]:
    return filter(None, map(_address_in, pool.node_names))


def _address_in(name: str) -> IPv4Address | None:
    """cn-shanghai.192.168.7.157 -> 192.168.7.157"""
    try:
        return IPv4Address(".".join(name.split(".")[-4:]))
    except ValueError:
        return None


def _instance_id(pool: PoolSpec, ordinal: int) -> str:
    number = int.from_bytes(sha256(f"{pool.name}/{ordinal}".encode()).digest())
    digits = ""
    for _ in range(17):
        number, digit = divmod(number, 36)
        digits += _ID_DIGITS[digit]
    return f"i-{_ID_PREFIX.get(pool.region, 'gp0')}{digits}"


def _node(
    pool: PoolSpec, name: str, address: IPv4Address, pods: IPv4Network, versions: Versions
) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": _labels(pool, name),
            "annotations": _annotations(pool),
        },
        "spec": {
            "podCIDR": str(pods),
            "podCIDRs": [str(pods)],
            "providerID": f"{pool.region}.{name.removeprefix(pool.region + '.')}",
            **({"taints": taints} if (taints := _taints(pool)) else {}),
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": str(address)},
                {"type": "Hostname", "address": name},
            ],
            **_resources(pool.instance_type),
            "nodeInfo": _node_info(pool, name, versions),
        },
    }


def _labels(pool: PoolSpec, name: str) -> dict[str, str]:
    labels = {
        kube_names.LABEL_ARCH: "amd64",
        kube_names.LABEL_ARCH_BETA: "amd64",
        kube_names.LABEL_OS: "linux",
        kube_names.LABEL_OS_BETA: "linux",
        kube_names.LABEL_HOSTNAME: name,
        kube_names.LABEL_INSTANCE_TYPE: pool.instance_type.name,
        kube_names.LABEL_INSTANCE_TYPE_BETA: pool.instance_type.name,
        kube_names.LABEL_REGION: pool.region,
        kube_names.LABEL_REGION_BETA: pool.region,
        kube_names.LABEL_ZONE: pool.zone,
        kube_names.LABEL_ZONE_BETA: pool.zone,
        names.LABEL_POOL: pool.name,
        **pool.labels,
    }
    if pool.role is Role.CONTROL_PLANE:
        labels[kube_names.LABEL_ROLE_MASTER] = ""
    return labels


def _annotations(pool: PoolSpec) -> dict[str, str]:
    annotations = {}
    if pool.resource_group:
        annotations[names.ANNOTATION_RESOURCE_GROUP] = pool.resource_group
    if pool.tags:
        annotations[names.ANNOTATION_TAGS] = dumps(dict(pool.tags), sort_keys=True)
    return annotations


def _taints(pool: PoolSpec) -> list[Obj]:
    taints: list[Obj] = []
    if pool.role is Role.CONTROL_PLANE:
        taints.append({"key": kube_names.LABEL_ROLE_MASTER, "effect": "NoSchedule"})
    for taint in pool.taints:
        value = {"value": taint.value} if taint.value else {}
        taints.append({"key": taint.key, **value, "effect": taint.effect})
    return taints


def _resources(machine: InstanceType) -> Obj:
    memory_kib = machine.memory_mib * 1024
    same = {
        "cpu": str(machine.vcpus),
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "pods": str(PODS_PER_NODE),
    }
    return {
        "capacity": {**same, "memory": f"{memory_kib}Ki", "ephemeral-storage": f"{_DISK_KIB}Ki"},
        "allocatable": {
            **same,
            "memory": f"{memory_kib - min(_EVICTION_KIB, memory_kib // 2)}Ki",
            # A kubelet keeps a tenth of the disk free, and says the rest in bytes.
            "ephemeral-storage": str(_DISK_KIB * 1024 * 9 // 10),
        },
    }


def _node_info(pool: PoolSpec, name: str, versions: Versions) -> Obj:
    machine = uuid.uuid5(_MACHINES, name)
    return {
        "architecture": "amd64",
        "bootID": str(uuid.uuid5(machine, "boot")),
        "containerRuntimeVersion": versions.runtime,
        "kernelVersion": pool.os.kernel_version,
        # Gone from newer servers' meaning, but still a required field of the type.
        "kubeProxyVersion": "",
        "kubeletVersion": versions.kubelet,
        "machineID": machine.hex,
        "operatingSystem": "linux",
        "osImage": pool.os.image,
        "systemUUID": str(machine),
    }
