"""What the collector believes of what agents tell it."""

from gpupool.core.readings import CardReading, NodeReadings
from gpupool.history.collector import Watched
from gpupool.readings import Readings
from tests.history.day import START, node_object, uuid


def told(**by_node: list[str]) -> Readings:
    found = {
        name: NodeReadings(name, START, tuple(CardReading(each, sm_percent=0) for each in uuids))
        for name, uuids in by_node.items()
    }
    return Readings(found, {})


def watched() -> Watched:
    made = Watched()
    for node in (0, 1):
        made.node(None, node_object(node))
    return made


def test_an_agent_tells_of_the_cards_of_its_own_node_only() -> None:
    mine, others = uuid(0, 0), uuid(1, 0)
    moment = watched().moment(START, told(n0=[mine, others], gone=[uuid(1, 1)]))
    assert set(moment.cards) == {mine}


def test_a_card_that_two_nodes_have_is_unknown() -> None:
    nodes = watched()
    forged = node_object(0)  # the inventory of another node, as if it was its own
    forged["metadata"]["name"] = "n1"
    nodes.node(None, forged)
    moment = nodes.moment(START, told(n0=[uuid(0, 0)], n1=[uuid(0, 0)]))
    assert moment.cards == {}
