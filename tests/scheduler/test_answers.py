"""What `gpupool explain` says: where a pod is, where it would go, who would have to leave."""

from gpupool.contract.pods import pod_request
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.scheduler.answers import outlook, outlook_words, placed_words
from tests.scheduler.model_api import UNITS, ModelApi, started


def whole_card() -> Allocation:
    share = CardShare(
        uuid="GPU-1", index=1, units=UNITS, card_units=UNITS, memory_mib=4096, percent=0
    )
    return Allocation((ContainerGpus("main", (share,), Isolation.WHOLE),))


def words(api: ModelApi, name: str) -> str:
    request = pod_request(api.pods[name])
    found = outlook(started(api, lambda: 0.0).state, request)
    return outlook_words(f"default/{name}", found)


def bind(api: ModelApi, name: str, node: str) -> None:
    """Bind by hand, without an allocation: the pod holds no card."""
    api.pods[name]["spec"]["nodeName"] = node


def test_a_whole_card_is_shown_without_units() -> None:
    assert placed_words("default/p", "n", whole_card()) == (
        "default/p is on node n.\n  container main: card 1 (GPU-1), the whole card\n"
    )


def test_a_share_is_shown_with_its_isolation() -> None:
    share = CardShare("GPU-1", 1, 3, 3226, 15)
    of = {Isolation.LIMIT: "limiter", Isolation.NONE: "none"}
    for isolation, word in of.items():
        allocation = Allocation((ContainerGpus("main", (share,), isolation),))
        assert placed_words("default/p", "n", allocation).endswith(
            f"card 1 (GPU-1), 3 of 15 units (3226 MiB), isolation {word}\n"
        )


def test_an_outlook_names_the_node_and_the_card() -> None:
    api = ModelApi()
    api.set_node("n", ill=False)
    api.add_pod("p", UNITS, priority=0)
    said = words(api, "p")
    assert said.startswith("default/p would go to node n.\n  container c: card ")
    assert f"{UNITS} of {UNITS} units" in said


def test_an_outlook_names_the_pods_that_would_have_to_leave() -> None:
    api = ModelApi()
    api.set_node("n", ill=False)
    api.nodes["n"]["status"]["allocatable"]["pods"] = "1"
    api.add_pod("low", 1, priority=0)
    bind(api, "low", "n")
    api.add_pod("high", 1, priority=5)
    said = words(api, "high")
    assert said.startswith("default/high fits nowhere now.\n")
    assert "Its priority would make room on node n; default/low would have to go.\n" in said


def test_no_more_than_fifty_nodes_are_listed_one_by_one() -> None:
    api = ModelApi()
    for number in range(53):
        api.set_node(f"n{number:02}", ill=False)
    api.add_pod("p", UNITS + 1, priority=0)
    lines = words(api, "p").splitlines()
    assert "... and 3 more" in lines
    assert lines[-1].startswith("Next: ")
    assert sum(line.startswith("n") and ": " in line for line in lines) == 50
