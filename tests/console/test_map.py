"""The map as values: colours, segments, filters."""

from dataclasses import replace

import pytest

from gpupool.console.card_cells import CardCell, Drawing
from gpupool.console.colours import SLOTS, UNKNOWN, By, by_of, palette, slots_of, use_class
from gpupool.console.gpu_views import overview
from gpupool.console.gpus import used_of
from gpupool.console.pages.map import most_free
from gpupool.console.pages.map_filters import free_gib
from gpupool.console.parts.cells import Level
from gpupool.console.words import ENGLISH, translator
from gpupool.core.gpu import CardHealth, GpuMode, Isolation
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.engine.cluster import ClusterModel
from tests.console.test_gpus import card, hold, node, shared


def drawn(cluster: ClusterModel, *readings: CardReading, by: By = By.NAMESPACE) -> CardCell:
    """The first card."""
    (shown,) = overview(cluster).nodes
    by_uuid = {reading.uuid: reading for reading in readings}
    made = Drawing(
        translator(ENGLISH),
        palette(by, (shown,)),
        by_uuid,
        used_of(by_uuid),
        {},
        lambda _, part: f"pod/{part.pod}",
        lambda _, view: f"card/{view.card.uuid}",
    )
    return made.cells(shown)[0]


def reading(**used_mib: int) -> CardReading:
    uses = (ContainerUse("default", pod, "c", mib) for pod, mib in used_mib.items())
    return CardReading("GPU-0", sum(used_mib.values()), containers=tuple(uses))


def test_a_segment_shows_which_part_of_its_share_is_not_used() -> None:
    five, three, free = drawn(shared(), reading(three=3226, five=0)).segments
    assert (three.width, three.unused, three.href) == (20, 0, "pod/three")
    assert (five.width, five.unused) == (33, 100)
    assert (free.kind, free.width, free.href) == ("free", 47, "")
    assert "default/three · 3 of 15 GiB" in three.title
    assert "3226 of 3226 MiB used" in three.title


def test_without_a_reading_nobody_claims_that_a_share_is_unused() -> None:
    assert [segment.unused for segment in drawn(shared()).segments[:2]] == [None, None]
    # The driver of this card does not tell what processes hold.
    silent = CardReading("GPU-0", 100, containers=None)
    assert [segment.unused for segment in drawn(shared(), silent).segments[:2]] == [None, None]


def test_by_use_a_segment_is_idle_busy_or_over_its_share() -> None:
    found = drawn(shared(), reading(three=4000, five=1), by=By.USE).segments
    assert [segment.kind for segment in found[:2]] == ["none use1", "limiter use5"]
    assert [use_class(percent) for percent in (0, 1, 25, 26, 100, 101)] == [
        "use0",
        "use1",
        "use1",
        "use2",
        "use4",
        "use5",
    ]
    assert use_class(None) == UNKNOWN


def test_cards_that_are_given_whole_only_offer_nothing_to_pods_that_want_a_share() -> None:
    t, cluster = translator(ENGLISH), ClusterModel()
    cluster.set_node(replace(node("n1", card(0)), gpu_mode=GpuMode.WHOLE))
    (free,) = drawn(cluster).segments
    assert free.label == "15 GiB free, as a whole card only"
    only_whole = overview(cluster).nodes
    assert most_free(t, only_whole) == "The most that is free on one card is 15 GiB."
    cluster.set_node(node("n2", card(1, outside_mib=4096)))
    both = overview(cluster).nodes
    assert most_free(t, both) == (
        "The most that is free on one card is 15 GiB, and for a pod with a share 11 GiB."
    )
    assert most_free(t, both[1:]) == "The most that is free on one card is 11 GiB."


def test_foreign_memory_and_cards_that_take_no_pods_are_seen() -> None:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0, outside_mib=4096)))
    foreign, free = drawn(cluster).segments
    assert (foreign.kind, foreign.width, free.label) == ("foreign", 25, "11 GiB free")
    for health, level in ((CardHealth.CORDONED, Level.WAITS), (CardHealth.LOST, Level.BAD)):
        cluster.set_node(node("n1", card(0, health=health, reason="XID 79")))
        cell = drawn(cluster)
        assert cell.state is not None
        assert (cell.state.level, cell.state.text) == (level, f"{health}: XID 79")
        assert cell.segments[0].label == "takes no pods", "what is free there is free for nobody"


def test_a_whole_card_is_one_segment() -> None:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0)))
    hold(cluster, "all", 15, Isolation.WHOLE)
    (segment,) = drawn(cluster).segments
    assert (segment.kind.split()[0], segment.width) == ("whole", 100)


def test_names_keep_their_colour_and_share_none_until_all_are_taken() -> None:
    names = [f"team-{number}" for number in range(SLOTS)]
    assert sorted(slots_of(names).values()) == list(range(SLOTS))
    assert slots_of(names[:1])[names[0]] == slots_of([names[0], "zz"])[names[0]]
    assert set(slots_of([*names, "one-more"]).values()) == set(range(SLOTS))


def test_colours_that_nobody_offers_are_those_of_namespaces() -> None:
    assert [by_of(text) for text in ("use", "", "rainbow")] == [By.USE, By.NAMESPACE, By.NAMESPACE]


@pytest.mark.parametrize(
    ("text", "amount"),
    [("", 0), (" 6 GiB", 6), ("6Gi", 6), ("15", 15), ("six", None), ("-1", None), ("9" * 9, None)],
)
def test_free_memory_is_asked_for_in_gib(text: str, amount: int | None) -> None:
    assert free_gib(text) == amount
