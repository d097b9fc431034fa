import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.placement import HostPort
from localkube.kubelet.node import LocalNode, PodAddresses, port_refusal, refusal


def node(**allocatable: int) -> LocalNode:
    return LocalNode("n", "u", "1.2.3.4", allocatable, PodAddresses("10.0.0.0/24"))


def test_a_pod_that_fits_is_admitted() -> None:
    assert refusal(node(cpu=1000, pods=2), {"cpu": 1000, "pods": 1}) is None


def test_the_message_names_the_first_resource_that_is_short() -> None:
    here = node(cpu=1000, memory=10, pods=5)
    here.take({"cpu": 600, "pods": 1})
    no = refusal(here, {"memory": 20, "cpu": 500, "pods": 1})
    assert no is not None
    assert no.reason == "OutOfcpu"
    assert no.message == (
        "Node didn't have enough resource: cpu, requested: 500, used: 600, capacity: 1000"
    )


def test_a_port_of_the_node_is_given_to_one_pod() -> None:
    here = node(pods=5)
    here.host_ports["a"] = (HostPort("0.0.0.0", "TCP", 8888),)
    no = port_refusal(here, [HostPort("127.0.0.1", "TCP", 8888)])
    assert no is not None
    assert no.reason == "NodePorts"
    assert port_refusal(here, [HostPort("0.0.0.0", "UDP", 8888)]) is None


def test_a_device_that_the_node_has_counts() -> None:
    here = node(pods=5)
    here.allocatable = {"pods": 5, "example.com/device": 1}
    here.take({"example.com/device": 1})
    no = refusal(here, {"example.com/device": 1})
    assert no is not None
    assert no.reason == "OutOfexample.com/device"


def test_an_extended_resource_that_the_node_does_not_have_is_not_checked() -> None:
    assert refusal(node(pods=5), {"example.com/licence": 1}) is None
    no = refusal(node(pods=5), {"hugepages-2Mi": 1})
    assert no is not None


@given(st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=60))
def test_no_two_pods_have_one_address(steps: list[int | None]) -> None:
    addresses = PodAddresses("10.0.0.0/28")
    held: list[str] = []
    for given_back in steps:
        if given_back is None:
            address = addresses.take()
            assert address not in held
            assert bool(address) is (len(held) < 13)
            if address:
                held.append(address)
        elif held:
            addresses.give_back(held.pop(given_back % len(held)))


def test_an_address_that_is_kept_is_not_handed_out() -> None:
    addresses = PodAddresses("10.0.0.0/29")
    addresses.keep("10.0.0.2")
    addresses.keep("192.168.0.1")  # of a pod in the machine's own network
    assert [addresses.take() for _ in range(4)] == ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]
    assert addresses.take() == ""


@pytest.mark.parametrize(("network", "first"), [("fd00::/64", ""), ("10.0.0.1/24", "10.0.0.2")])
def test_networks_that_the_api_accepts_do_not_stop_the_kubelets(network: str, first: str) -> None:
    """The exception would end the program that runs all nodes, at every start again."""
    assert PodAddresses(network).take() == first


@pytest.mark.parametrize("address", ["fd00::1", "10.0.0", "x", "10.0.0.2.1"])
def test_an_address_that_somebody_else_wrote_is_none_of_the_nodes(address: str) -> None:
    addresses = PodAddresses("10.0.0.0/29")
    addresses.keep(address)
    addresses.give_back(address)
    assert addresses.take() == "10.0.0.2"
