"""What pods that come and go leave of a node: exact, however much is held, with and without the
kernel.
"""

from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import MOST, UNKNOWN
from tests.engine.building import cards, shared, whole

amounts = st.sampled_from([0, 1, 400, 1000, 2**61, MOST, 2 * MOST])
offers = st.fixed_dictionaries(
    {"cpu": amounts, "pods": st.sampled_from([0, 3, 110])},
    optional={"x.io/one": st.sampled_from([0, 2, MOST]), "x.io/two": st.just(5)},
)
requests = st.fixed_dictionaries(
    {"cpu": amounts, "pods": st.just(1)},
    optional={"x.io/one": st.integers(0, 3), "x.io/two": st.integers(0, 3)},
)
units = st.integers(0, 16)


def on_card(at: int, units: int) -> Allocation:
    isolation = Isolation.LIMIT if units else Isolation.WHOLE
    return Allocation((ContainerGpus("c", (CardShare(f"n-{at}", at, units, 1, 15),), isolation),))


class Both:
    """The same on a cluster with the kernel and on one without, and what both must say."""

    def __init__(self) -> None:
        self.clusters = (ClusterModel(), ClusterModel(compiled=False))
        self.held: dict[str, PodRequest] = {}
        self.offered: dict[str, int] = {}
        self._uids = count()

    def set_node(self, offered: dict[str, int], number: int) -> None:
        self.offered = offered
        for cluster in self.clusters:
            cluster.set_node(NodeInfo("n", allocatable=offered, inventory=cards("n", number)))

    def hold(self, resources: dict[str, int], units: int, at: int) -> None:
        uid = str(next(self._uids))
        gpus = (shared(uid, units) if units else whole(uid)).gpus
        self.held[uid] = pod = PodRequest(uid, "a", uid, resources, gpus=gpus)
        for cluster in self.clusters:
            cluster.hold(pod, "n", on_card(at, units))

    def release(self, which: int) -> None:
        self.held.pop(str(which), None)
        for cluster in self.clusters:
            cluster.release(str(which))

    def left(self, name: str) -> int:
        used = sum(pod.resources.get(name, 0) for pod in self.held.values())
        return max(0, min(self.offered.get(name, 0) - used, MOST))


steps = st.one_of(
    st.builds(partial, st.just(Both.hold), resources=requests, units=units, at=st.integers(0, 2)),
    st.builds(partial, st.just(Both.release), which=st.integers(0, 20)),
    st.builds(partial, st.just(Both.set_node), offered=offers, number=st.integers(1, 3)),
)


@given(first=offers, steps=st.lists(steps, max_size=25))
@settings(deadline=None)
def test_what_is_left_is_what_all_pods_together_leave(
    first: dict[str, int], steps: list[Callable[[Both], None]]
) -> None:
    both = Both()
    both.set_node(first, 2)
    for step in steps:
        step(both)
    mine, theirs = (cluster.columns for cluster in both.clusters)
    for name, row in mine.resource_rows.items():
        if row != UNKNOWN:
            assert mine.free[row, 0] == both.left(name)
    for name in ("free", "pods", "card_free", "card_compute"):
        assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name
