"""A pool's nodes as Node objects, in the shape that a kubelet posts them. Pure.

Names and addresses depend only on the pool and on what is already in use, so that a cluster that is
created twice has the same nodes. Cards are not in the capacity: device plugins add them later.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network
from itertools import count, islice
from json import dumps

from gpupool.contract import names
from gpupool.local.config.spec import Network, NodeNaming, PoolSpec, Role
from kubeclient import names as kube_names
from kubeclient.objects import Obj
from localkube.nodes import Machine, node_object

POD_PREFIX = 24  # of the pod network that a node gets
_ID_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
# Instance ids begin with a mark of their region.
_ID_PREFIX = {
    "cn-beijing": "2ze",
    "cn-hangzhou": "bp1",
    "cn-shanghai": "uf6",
    "cn-shenzhen": "wz9",
}


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


def new_nodes(pool: PoolSpec, more: int, *, network: Network, taken: Taken) -> list[Obj]:
    """`more` further nodes of the pool, noted in `taken`; fewer if a pool of machines has no more
    whose names and addresses are free."""
    identities = islice(_identities(pool, network, taken), more)
    pods = _free_pod_networks(network, taken)
    return [_node(pool, name, address, next(pods)) for name, address in identities]


def cluster_nodes(pools: Iterable[PoolSpec], *, network: Network) -> list[Obj]:
    """All nodes of a new cluster."""
    pools = tuple(pools)
    taken = Taken()
    for pool in pools:
        taken.reserved.update(_given_addresses(pool))
    return [
        node for pool in pools for node in new_nodes(pool, pool.count, network=network, taken=taken)
    ]


def _identities(
    pool: PoolSpec, network: Network, taken: Taken
) -> Iterator[tuple[str, IPv4Address]]:
    """Names and addresses for further nodes: those that the pool gives, then generated ones."""
    taken.reserved.update(_given_addresses(pool))
    addresses = _free_addresses(network, taken)
    for name in pool.machines or pool.node_names:
        given = _address_in(name)
        if name in taken.names or given in taken.addresses:
            continue
        taken.names.add(name)
        taken.addresses.add(address := given or next(addresses))
        yield name, address
    if pool.machines:
        return
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
    return filter(None, map(_address_in, (*pool.node_names, *pool.machines)))


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


def _node(pool: PoolSpec, name: str, address: IPv4Address, pods: IPv4Network) -> Obj:
    machine = pool.instance_type
    return node_object(
        Machine(
            name=name,
            address=address,
            pod_network=pods,
            cpus=machine.vcpus,
            memory_mib=machine.memory_mib,
            labels=_labels(pool),
            annotations=_annotations(pool),
            taints=tuple(_taints(pool)),
            provider_id=f"{pool.region}.{name.removeprefix(pool.region + '.')}",
            os_image=pool.os.image,
            kernel_version=pool.os.kernel_version,
        )
    )


def _labels(pool: PoolSpec) -> dict[str, str]:
    labels = {
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
