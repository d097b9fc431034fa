"""One of the nodes that were listed: the short way finds what the ranking of all of them says."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.engine.candidates import candidates
from gpupool.engine.decide import Placement, Unschedulable, decide_on
from gpupool.engine.policies import DEFAULT, POLICIES
from gpupool.engine.policies.mix import Mix
from tests.engine.building import cluster_of, place
from tests.engine.samples import pods, themed_nodes

POLICY = POLICIES[DEFAULT](Mix())


@settings(max_examples=60)
@given(st.data())
def test_on_listed_nodes_the_best_candidate_is_taken(data: st.DataObject) -> None:
    theme = data.draw(st.sampled_from(["gpus", "everything"]))
    nodes = data.draw(st.lists(themed_nodes(theme), max_size=4))
    cluster = cluster_of(*nodes)
    for number in range(data.draw(st.integers(0, 6))):
        place(cluster, data.draw(pods(theme, uid=f"u{number}")))
    names = data.draw(st.lists(st.sampled_from([*(node.name for node in nodes), "unheard-of"])))
    pod = data.draw(pods(theme, uid="new"))
    found = decide_on(cluster, pod, POLICY, names)
    if offered := candidates(cluster, pod, POLICY, names):
        assert isinstance(found, Placement)
        assert found.node == offered.best()
    else:
        assert isinstance(found, Unschedulable)
