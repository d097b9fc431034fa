"""Cards as devices of the kubelet: how many there are, and which are called unhealthy."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.agent.devices import Holding, Offer, device_count, offers, unhealthy_ids
from gpupool.agent.holdings import joined
from gpupool.contract.allocation import allocation_text
from gpupool.core.gpu import (
    Allocation,
    Card,
    CardHealth,
    CardShare,
    ContainerGpus,
    GpuMode,
    Isolation,
)
from kubeclient.kubeletapi.messages import (
    HEALTHY,
    MAX_MESSAGE_BYTES,
    ContainerDevices,
    ContainerResources,
    ListAndWatchResponse,
    ListPodResourcesResponse,
    PodResources,
)
from kubeclient.wire import encode

GPU, MEM, PERCENT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"
M40 = Card(0, "GPU-a", "Tesla M40", 12209)
V100 = Card(1, "GPU-b", "Tesla V100-SXM2-16GB", 16130)


def counts(found: dict[str, Offer]) -> dict[str, tuple[int, int]]:
    return {
        resource: (len(offer.devices), sum(d.health == HEALTHY for d in offer.devices))
        for resource, offer in found.items()
    }


def test_whole_cards_are_a_device_each() -> None:
    found = offers((M40, V100), GpuMode.WHOLE, {})
    assert counts(found) == {GPU: (2, 2), MEM: (0, 0), PERCENT: (0, 0)}


def test_shared_cards_are_a_device_for_each_unit_of_their_own_memory() -> None:
    found = offers((M40, V100), GpuMode.SHARED, {})
    assert counts(found) == {GPU: (0, 0), MEM: (11 + 15, 26), PERCENT: (200, 200)}


def test_all_shares_of_a_bad_card_are_unhealthy() -> None:
    bad = Card(0, "GPU-a", "Tesla M40", 12209, CardHealth.UNHEALTHY)
    found = offers((bad, V100), GpuMode.SHARED, {})
    assert counts(found) == {GPU: (0, 0), MEM: (26, 15), PERCENT: (200, 100)}


def test_ids_are_short() -> None:
    found = offers((M40, V100), GpuMode.SHARED, {})
    assert max(len(device.id) for device in found[MEM].devices) == 2


@pytest.mark.parametrize("unit_mib", [1, 4])
def test_a_unit_with_too_many_devices_for_a_message_is_refused(unit_mib: int) -> None:
    cards = [Card(i, f"GPU-{i}", "H100", 81559, unit_mib=unit_mib) for i in range(16)]
    offer = offers(cards, GpuMode.SHARED, {})[MEM]
    assert offer.devices == ()
    assert f"in units of {unit_mib} MiB" in offer.refusal
    assert "would pass the 4 MiB that the kubelet takes" in offer.refusal


def test_the_longest_list_that_is_offered_fits_into_a_message() -> None:
    lost = Card(0, "GPU-a", "H100", 199_728, CardHealth.LOST, unit_mib=1)
    longest = offers([lost], GpuMode.SHARED, {})[MEM]
    assert len(longest.devices) == 199_728
    assert 0.97 < len(encode(ListAndWatchResponse(longest.devices))) / MAX_MESSAGE_BYTES <= 1
    more = replace(lost, memory_mib=199_729)
    assert offers([more], GpuMode.SHARED, {})[MEM].refusal


# -- which devices are called unhealthy ----------------------------------------------------

UNITS = 3


@st.composite
def nodes(draw: st.DrawFn) -> tuple[list[Card], list[Holding]]:
    """Three cards of three units; containers on some of them; some cards bad. The kubelet has given
    out ids as it liked."""
    healths = draw(st.lists(st.sampled_from(list(CardHealth)), min_size=3, max_size=3))
    cards = [
        Card(i, f"GPU-{i}", "T", UNITS, health, unit_mib=1) for i, health in enumerate(healths)
    ]
    ids = draw(st.permutations([str(number) for number in range(3 * UNITS)]))
    holdings: list[Holding] = []
    for card in cards:
        for used in draw(st.lists(st.integers(1, 2), max_size=2)):
            if used + sum(h.shares.get(card.uuid, 0) for h in holdings) <= UNITS:
                holdings.append(Holding(tuple(ids[:used]), {card.uuid: used}))
                ids = ids[used:]
    return cards, holdings


@given(nodes())
def test_the_kubelet_has_as_many_free_devices_as_the_scheduler_has_room(
    node: tuple[list[Card], list[Holding]],
) -> None:
    cards, holdings = node
    bad = unhealthy_ids(cards, [UNITS] * 3, holdings)
    held = {number for holding in holdings for number in holding.ids}
    free = {str(number) for number in range(3 * UNITS)} - held - bad
    room = sum(UNITS - _used(card, holdings) for card in cards if card.takes_pods)
    assert len(free) == room
    assert len(bad) == sum(UNITS for card in cards if not card.takes_pods)


@given(nodes())
def test_containers_on_good_cards_keep_healthy_devices(
    node: tuple[list[Card], list[Holding]],
) -> None:
    cards, holdings = node
    good = {card.uuid for card in cards if card.takes_pods}
    bad = unhealthy_ids(cards, [UNITS] * 3, holdings)
    assert not [h for h in holdings if good & set(h.shares) and bad & set(h.ids)]


def _used(card: Card, holdings: Sequence[Holding]) -> int:
    return sum(holding.shares.get(card.uuid, 0) for holding in holdings)


def test_holdings_join_what_the_kubelet_gave_with_what_the_scheduler_chose() -> None:
    share = CardShare("GPU-b", 1, units=3, memory_mib=3226, card_units=15, percent=20)
    allocation = Allocation((ContainerGpus("main", (share,), Isolation.LIMIT),))
    pod = {
        "metadata": {
            "namespace": "default",
            "name": "p",
            "annotations": {"gpupool.io/allocation": allocation_text(allocation)},
        }
    }
    devices = (
        ContainerDevices(MEM, ("4", "7", "9")),
        ContainerDevices(PERCENT, ("1",)),
        ContainerDevices("other.com/x", ("z",)),
    )
    given = ListPodResourcesResponse(
        (PodResources("p", "default", (ContainerResources("main", devices),)),)
    )
    assert joined(given, [pod]) == {
        GPU: [],
        MEM: [Holding(("4", "7", "9"), {"GPU-b": 3})],
        PERCENT: [Holding(("1",), {"GPU-b": 20})],
    }


def test_a_container_of_an_unknown_pod_still_holds_its_devices() -> None:
    devices = (ContainerDevices(GPU, ("0",)),)
    given = ListPodResourcesResponse(
        (PodResources("p", "default", (ContainerResources("main", devices),)),)
    )
    assert joined(given, [])[GPU] == [Holding(("0",), {})]


def test_no_mode_offers_a_card_twice() -> None:
    for mode in GpuMode:
        whole = device_count(M40, GPU, mode)
        shared = device_count(M40, MEM, mode)
        assert bool(whole) != bool(shared)
