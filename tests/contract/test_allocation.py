import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.contract.allocation import (
    BadAllocation,
    allocation_annotations,
    allocation_of,
    allocation_text,
    pod_allocation,
)
from gpupool.core.gpu import Allocation, Card, CardShare, ContainerGpus, Isolation, limit_mib
from kubeclient.objects import Obj

V100 = Card(0, "GPU-a", "Tesla V100-SXM2-16GB", 16130)
SHARE = CardShare("GPU-a", 0, units=3, memory_mib=3226, card_units=15)

small = st.integers(0, 3)
shares = st.builds(
    CardShare, st.sampled_from(["GPU-a", "GPU-b"]), small, small, small, small, small
)
allocations = st.lists(
    st.builds(
        ContainerGpus,
        st.sampled_from(["a", "b", "c"]),
        st.lists(shares, min_size=1, max_size=2).map(tuple),
        st.sampled_from(Isolation),
        st.booleans(),
    ),
    max_size=3,
    unique_by=lambda gpus: gpus.container,
).map(lambda found: Allocation(tuple(found)))


@given(allocations)
def test_an_allocation_is_read_as_it_was_written(allocation: Allocation) -> None:
    assert allocation_of(allocation_text(allocation)) == allocation


@pytest.mark.parametrize(
    ("units", "memory_mib", "expected"),
    [(3, 16130, 3226), (3, 15079, 3231), (4, 16130, 4301), (2, 16130, 2150), (15, 16130, 16130)],
)
def test_a_share_is_an_equal_part_of_all_that_the_card_has(
    units: int, memory_mib: int, expected: int
) -> None:
    assert limit_mib(units, Card(0, "", "", memory_mib)) == expected


@given(st.integers(1, 64), st.data())
def test_all_shares_of_a_card_never_pass_its_memory(gib: int, data: st.DataObject) -> None:
    card = Card(0, "", "", gib * 1024 + data.draw(st.integers(0, 1023)))
    units = data.draw(st.integers(0, card.units))
    assert limit_mib(units, card) + limit_mib(card.units - units, card) <= card.memory_mib


def test_an_isolated_share_names_its_limit() -> None:
    gpus = ContainerGpus("main", (SHARE,), Isolation.LIMIT)
    found = allocation_annotations(Allocation((gpus,)), now_ns=7)
    assert found.pop("gpupool.io/allocation")
    assert found == {
        "devices.gpupool.io/main": "GPU-a",
        "indexes.gpupool.io/main": "0",
        "card-memory.gpupool.io/main": "15",
        "no-isolation.gpupool.io/main": "false",
        "limits.gpupool.io/main": "GPU-a 3226 0\n",
        "ALIYUN_COM_GPU_MEM_IDX": "0",
        "ALIYUN_COM_GPU_MEM_POD": "3",
        "ALIYUN_COM_GPU_MEM_DEV": "15",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "7",
    }


def test_a_share_without_isolation_says_so_in_the_limit_file() -> None:
    gpus = ContainerGpus("main", (SHARE,), Isolation.NONE)
    found = allocation_annotations(Allocation((gpus,)), now_ns=7)
    assert found["limits.gpupool.io/main"] == "unlimited\n"
    assert found["no-isolation.gpupool.io/main"] == "true"


def test_whole_cards_have_no_limit_and_nothing_that_gpushare_reads() -> None:
    whole = CardShare("GPU-a", 0, units=15, memory_mib=16130, card_units=15)
    gpus = ContainerGpus("main", (whole,), Isolation.WHOLE)
    found = allocation_annotations(Allocation((gpus,)), now_ns=7)
    assert set(found) == {
        "gpupool.io/allocation",
        "devices.gpupool.io/main",
        "indexes.gpupool.io/main",
    }


def test_a_pod_without_gpus_has_no_annotation() -> None:
    assert allocation_annotations(Allocation(), now_ns=7) == {}


def with_share(**fields: object) -> str:
    share = {"uuid": "GPU-a", "index": 0, "units": 3, "memoryMiB": 3226, "cardUnits": 15} | fields
    containers = {"main": {"cards": [share], "isolation": "limit"}}
    return json.dumps({"version": 1, "containers": containers})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Input data was truncated"),
        ("[]", "Expected `object`"),
        (json.dumps({"version": 2, "containers": {}}), "version 2; this program reads version 1"),
        (json.dumps({"version": 1, "containers": {"a": {"cards": 1}}}), "Expected `array`"),
        (" " * 300_000, "300000 bytes"),
        (with_share(units=-3), "Expected `int` >= 0"),
        (with_share(units=2**41), "Expected `int` <= 1048576"),
        (with_share(memoryMiB=10**400), "Expected `int` <= 16777216"),
        (with_share(percent=101), "Expected `int` <= 100"),
        (with_share(uuid=""), "length >= 1"),
        ('{"x": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_allocation_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(BadAllocation, match=said):
        allocation_of(text)


def test_where_the_driver_holds_shares_its_hook_gets_them_in_mib() -> None:
    gpus = ContainerGpus("main", (SHARE,), Isolation.LIMIT, by_driver=True)
    found = allocation_annotations(Allocation((gpus,)), now_ns=7)
    assert found["memory-request.gpupool.io/main"] == "3226"
    assert found["memory-limit.gpupool.io/main"] == "3226"
    free = replace(gpus, isolation=Isolation.NONE)
    assert "memory-limit.gpupool.io/main" not in allocation_annotations(
        Allocation((free,)), now_ns=7
    )


def test_of_shares_that_differ_the_hook_gets_the_smallest_and_the_largest() -> None:
    larger = replace(SHARE, uuid="GPU-b", memory_mib=4000)
    gpus = ContainerGpus("main", (SHARE, larger), Isolation.LIMIT, by_driver=True)
    found = allocation_annotations(Allocation((gpus,)), now_ns=7)
    assert found["memory-request.gpupool.io/main"] == "3226"
    assert found["memory-limit.gpupool.io/main"] == "4000"


def _pod(text: str) -> Obj:
    return {"metadata": {"annotations": {"gpupool.io/allocation": text}}}


def test_a_pod_is_read_once_as_long_as_its_allocation_stays_the_same() -> None:
    def allocation(name: str) -> Allocation:
        return Allocation((ContainerGpus(name, (SHARE,), Isolation.LIMIT),))

    first, second = allocation_text(allocation("a")), allocation_text(allocation("b"))
    assert pod_allocation(_pod(first)) is pod_allocation(_pod(first))
    assert pod_allocation(_pod(second)) == allocation("b")
    assert pod_allocation(_pod("no document")) == Allocation()
    long = allocation_text(allocation("c")) + " " * 5000
    assert pod_allocation(_pod(long)) == allocation("c")
    assert pod_allocation(_pod(long)) is not pod_allocation(_pod(long))  # anybody may write it
