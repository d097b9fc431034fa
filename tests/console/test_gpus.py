"""What pages show of cards, as values."""

from hypothesis import given
from hypothesis import strategies as st

from gpupool.console.gpu_views import GpuViews, overview
from gpupool.console.gpus import asked_words
from gpupool.console.words import CHINESE, ENGLISH, translator
from gpupool.contract.names import LABEL_POOL
from gpupool.core.gpu import (
    Allocation,
    Card,
    CardHealth,
    CardShare,
    ContainerGpus,
    GpuAsk,
    GpuMode,
    Inventory,
    Isolation,
    Wall,
)
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel

V100 = "Tesla V100-SXM2-16GB"


def card(index: int, **other: object) -> Card:
    return Card(index, f"GPU-{index}", V100, 16130, **other)  # type: ignore[arg-type]


def node(name: str, *cards: Card, wall: Wall | None = None) -> NodeInfo:
    return NodeInfo(
        name,
        labels={LABEL_POOL: "cgpu"},
        allocatable={"cpu": 8000, "pods": 10},
        inventory=Inventory(cards, wall=wall),
        gpu_mode=GpuMode.SHARED,
        isolates=True,
    )


def pod(name: str, *asks: GpuAsk) -> PodRequest:
    return PodRequest(name, "default", name, {"pods": 1}, gpus=asks)


def hold(cluster: ClusterModel, name: str, units: int, isolation: Isolation) -> None:
    share = CardShare("GPU-0", 0, units, units * 16130 // 15, 15)
    gpus = ContainerGpus("c", (share,), isolation)
    ask = GpuAsk("c", whole=1) if isolation is Isolation.WHOLE else GpuAsk("c", units=units)
    cluster.hold(pod(name, ask), "n1", Allocation((gpus,)))


def shared(wall: Wall | None = None) -> ClusterModel:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0), card(1), wall=wall))
    hold(cluster, "three", 3, Isolation.LIMIT)
    hold(cluster, "five", 5, Isolation.NONE)
    return cluster


def test_a_card_shows_who_holds_how_much_of_it() -> None:
    found = overview(shared())
    (shown,) = found.nodes
    assert (shown.name, shown.pool) == ("n1", "cgpu")
    first, second = shown.cards
    assert [(part.pod, part.units) for part in first.parts] == [("five", 5), ("three", 3)]
    assert (first.used, first.card.units, second.parts) == (8, 15, ())
    totals = found.totals
    assert (totals.cards, totals.free, totals.used, totals.units, totals.pods) == (2, 1, 8, 30, 2)


def test_a_segment_is_as_wide_as_its_share_and_says_what_holds_it() -> None:
    for wall, shown in ((Wall.DRIVER, "driver"), (Wall.LIMITER, "limiter"), (None, "limiter")):
        five, three = overview(shared(wall)).nodes[0].cards[0].parts
        assert (five.width(15), three.width(15)) == (33, 20)
        assert (five.wall_class, three.wall_class) == ("none", shown)


def test_nodes_without_cards_are_left_out() -> None:
    cluster = ClusterModel()
    cluster.set_node(NodeInfo("plain", allocatable={"cpu": 1000}))
    assert not overview(cluster).nodes


def test_a_card_that_takes_no_pods_is_not_free() -> None:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0, health=CardHealth.UNHEALTHY, reason="XID 79")))
    totals = overview(cluster).totals
    assert (totals.cards, totals.healthy, totals.free) == (1, 0, 0)


def test_a_request_is_described_in_words() -> None:
    english, chinese = translator(ENGLISH), translator(CHINESE)
    wholes = (GpuAsk("a", whole=1), GpuAsk("b", whole=2))
    assert asked_words(english, wholes) == "1 whole card, 2 whole cards"
    assert asked_words(chinese, wholes) == "1 张整卡, 2 张整卡"
    two = GpuAsk("c", units=3, cards=2, percent=50)
    assert asked_words(english, [two]) == "3 GiB on each of 2 cards and 50 % of its compute"


def test_memory_that_processes_outside_use_is_not_free() -> None:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0, outside_mib=4096)))
    (shown,) = overview(cluster).nodes[0].cards
    assert (shown.free, shown.offers, shown.outside) == (11, 11, 4)


def test_a_card_that_takes_no_pods_offers_nothing() -> None:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0, health=CardHealth.CORDONED)))
    found = overview(cluster).nodes[0]
    assert (found.cards[0].free, found.cards[0].offers, found.most_free) == (15, 0, 0)


NAMES = st.sampled_from(("n1", "n2", "n3"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), NAMES, st.integers(0, 3)),
        st.tuples(st.just("gone"), NAMES, st.just(0)),
        st.tuples(st.just("hold"), NAMES, st.integers(1, 15)),
        st.tuples(st.just("release"), NAMES, st.integers(1, 15)),
    ),
    max_size=30,
)


def step(cluster: ClusterModel, kind: str, name: str, number: int) -> None:
    if kind == "node":
        cluster.set_node(node(name, *map(card, range(number))))
    elif kind == "gone":
        cluster.remove_node(name)
    elif kind == "hold":
        share = CardShare("GPU-0", 0, number, number * 16130 // 15, 15)
        gpus = ContainerGpus("c", (share,), Isolation.LIMIT)
        asked = pod(f"p{number}", GpuAsk("c", units=number))
        cluster.hold(asked, name, Allocation((gpus,)))
    else:
        cluster.release(f"p{number}")


@given(STEPS)
def test_what_is_kept_up_to_date_is_what_would_be_made_anew(
    steps: list[tuple[str, str, int]],
) -> None:
    cluster = ClusterModel()
    kept = GpuViews(cluster)
    for each in steps:
        step(cluster, *each)
        found, anew = kept.now(), overview(cluster)
        assert [(n.name, n.pool, n.cards) for n in found.nodes] == [
            (n.name, n.pool, n.cards) for n in anew.nodes
        ]
        assert found.totals == anew.totals


def test_only_nodes_that_changed_are_made_again() -> None:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0)))
    cluster.set_node(node("n2", card(0)))
    kept = GpuViews(cluster)
    before = kept.now()
    hold(cluster, "three", 3, Isolation.LIMIT)
    after = kept.now()
    assert after.nodes[1] is before.nodes[1]
    assert after.nodes[0].version > before.version
    assert after.shape == before.shape, "no node has come or gone"
    cluster.remove_node("n2")
    assert kept.now().shape > before.shape
