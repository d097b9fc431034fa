"""The heat view's data: three characters for each card, and after a change only what changed."""

from gpupool.console.colours import By, palette
from gpupool.console.gpu_views import GpuViews, overview
from gpupool.console.gpus import CardView, NodeView, Overview
from gpupool.console.heat import Heat
from gpupool.console.pages.map_filters import filters_of
from gpupool.core.gpu import CardHealth, Isolation
from gpupool.core.readings import CardReading
from gpupool.engine.cluster import ClusterModel
from tests.console.test_gpus import card, hold, node, shared


def heat(found: Overview, by: By = By.NAMESPACE, *readings: CardReading, **query: str) -> Heat:
    by_uuid = {reading.uuid: reading for reading in readings}
    return Heat(palette(by, found.nodes), by_uuid, filters_of(query).mean)


def text(cluster: ClusterModel, **query: str) -> str:
    found = overview(cluster)
    return heat(found, By.NAMESPACE, **query).text(found.nodes[0])


def test_a_card_is_whose_it_is_how_full_and_how_it_is() -> None:
    first, second = text(shared())[:3], text(shared())[3:]
    assert first[0].isdecimal(), "the colour of its namespace"
    assert (first[1], first[2]) == (chr(48 + 11), "h"), "8 of 15 units, in twentieths"
    assert second == "-0h"


def test_cards_that_take_no_pods_and_whole_ones_are_told_apart() -> None:
    cluster = ClusterModel()
    sick = (CardHealth.CORDONED, CardHealth.LOST)
    cards = (card(index + 1, health=health) for index, health in enumerate(sick))
    cluster.set_node(node("n1", card(0), *cards))
    hold(cluster, "all", 15, Isolation.WHOLE)
    assert text(cluster)[2::3] == "wcs"
    assert text(cluster)[1] == chr(48 + 20)


def test_what_a_filter_does_not_mean_is_a_capital() -> None:
    assert text(shared(), free="10")[2::3] == "Hh"
    assert text(shared(), pool="other")[2::3] == "HH"
    assert text(shared(), q="three")[2::3] == "hh"
    assert text(shared(), node="n2")[2::3] == "HH"
    assert text(shared(), health="sick")[2::3] == "HH"
    assert text(shared(), health="no such state", free="much")[2::3] == "hh"


def test_by_use_a_square_has_the_colour_of_what_is_used() -> None:
    found = overview(shared())

    def colour(*readings: CardReading) -> str:
        return heat(found, By.USE, *readings).text(found.nodes[0])[0]

    assert colour() == "u", "nobody knows"
    assert colour(CardReading("GPU-0", 0)) == "a"
    assert colour(CardReading("GPU-0", 4000)) == "c", "of 8602 MiB that are allocated"
    assert colour(CardReading("GPU-0", 16130)) == "f"


def test_only_nodes_that_changed_are_sent() -> None:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0)))
    cluster.set_node(node("n2", card(0)))
    kept = GpuViews(cluster)
    before = kept.now()
    assert heat(before).nodes(before, -1)[0] is True
    hold(cluster, "three", 3, Isolation.LIMIT)
    now = kept.now()
    is_whole, sent = heat(now).nodes(now, before.version)
    assert (is_whole, [name for name, _, _ in sent]) == (False, ["n1"])
    assert heat(now).nodes(now, now.version) == (False, [])
    cluster.remove_node("n2")
    gone = kept.now()
    is_whole, sent = heat(gone).nodes(gone, now.version)
    assert (is_whole, [name for name, _, _ in sent]) == (True, ["n1"])
    # Of a version that was never there.
    assert heat(gone).nodes(gone, gone.version + 5)[0] is True


def test_a_filter_is_asked_for_each_card_of_each_node() -> None:
    seen: list[tuple[str, int]] = []

    def means(shown: NodeView, view: CardView) -> bool:
        seen.append((shown.name, view.card.index))
        return True

    found = overview(shared())
    Heat(palette(By.POOL, found.nodes), {}, means).text(found.nodes[0])
    assert seen == [("n1", 0), ("n1", 1)]
