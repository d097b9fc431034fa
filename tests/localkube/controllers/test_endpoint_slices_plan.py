"""Which endpoint goes into which slice."""

from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.controllers.endpoint_slices_plan import SLICE_LIMIT, Ports, Slice, arranged

HTTP: Ports = (("http", "TCP", 80),)
OTHER: Ports = (("http", "TCP", 81),)


def endpoint(number: int) -> Obj:
    return {"addresses": [f"10.0.0.{number}"], "targetRef": {"uid": str(number)}}


def known(name: str, ports: Ports, numbers: list[int]) -> Obj:
    shown = [{"name": n, "protocol": p, "port": number} for n, p, number in ports]
    return {
        "metadata": {"name": name},
        "ports": shown,
        "endpoints": [endpoint(number) for number in numbers],
    }


def numbers(each: Slice) -> list[int]:
    return [int(found["targetRef"]["uid"]) for found in each.endpoints]


pods = st.lists(st.integers(0, 400), unique=True, max_size=330)
before = st.lists(
    st.tuples(st.sampled_from([HTTP, OTHER, ()]), st.lists(st.integers(0, 400), max_size=130)),
    max_size=6,
)


@given(before, pods, pods)
def test_every_endpoint_is_in_one_slice_and_stays_there(
    slices: list[tuple[Ports, list[int]]], web: list[int], others: list[int]
) -> None:
    found = [known(f"s-{place}", *each) for place, each in enumerate(slices)]
    groups = {HTTP: web, OTHER: [number + 1000 for number in others]}
    wanted, surplus = arranged(
        found, {ports: [endpoint(n) for n in group] for ports, group in groups.items() if group}
    )
    for ports, group in groups.items():
        placed = [n for each in wanted if each.ports == ports for n in numbers(each)]
        assert sorted(placed) == sorted(group)
    assert all(len(each.endpoints) <= SLICE_LIMIT for each in wanted)
    assert all(each.endpoints for each in wanted) or len(wanted) == 1
    names = [each.known["metadata"]["name"] for each in wanted if each.known is not None]
    names += [each["metadata"]["name"] for each in surplus]
    assert sorted(names) == sorted(each["metadata"]["name"] for each in found)


def test_one_pod_more_changes_one_slice() -> None:
    whole = [known("a", HTTP, list(range(100, 200))), known("b", HTTP, list(range(200, 250)))]
    group = [endpoint(number) for number in range(99, 250)]  # 99 comes first by its name
    wanted, surplus = arranged(whole, {HTTP: group})
    assert not surplus
    assert [numbers(each) for each in wanted] == [
        list(range(100, 200)),
        [*range(200, 250), 99],
    ]


def test_one_pod_less_changes_one_slice() -> None:
    whole = [known("a", HTTP, list(range(100, 200))), known("b", HTTP, list(range(200, 250)))]
    wanted, surplus = arranged(whole, {HTTP: [endpoint(number) for number in range(101, 250)]})
    assert not surplus
    assert [len(each.endpoints) for each in wanted] == [99, 50]


def test_without_endpoints_one_slice_says_so() -> None:
    (alone,), surplus = arranged([], {})
    assert (alone.known, alone.endpoints, surplus) == (None, [], [])
    first, second = known("a", HTTP, [1]), known("b", HTTP, [2])
    (kept,), surplus = arranged([first, second], {})
    assert kept.known is first
    assert surplus == [second]
