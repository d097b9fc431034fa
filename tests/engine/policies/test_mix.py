from gpupool.engine.packing import Packing
from gpupool.engine.policies.mix import Demand, MixLearner
from gpupool.engine.policies.policy import Ask
from tests.engine.policies.clusters import request
from tests.engine.policies.test_residue import cluster

ONE, HALF = Ask(1, 0, 0, 1, 1), Ask(1, 5, 0, 1, 1)


def test_a_mix_lists_the_most_frequent_kind_first() -> None:
    learner = MixLearner()
    for ask in (ONE, HALF, HALF):
        learner.count((ask, ()))
    assert learner.mix((2,), (10,)).demands == (Demand(HALF, (), 2), Demand(ONE, (), 1))


def test_a_new_mix_is_due_when_there_are_half_as_many_new_pods() -> None:
    learner, renewals = MixLearner(), 0
    for _ in range(1000):
        learner.count((ONE, ()))
        if learner.is_due:
            learner.mix((2,), (10,))
            renewals += 1
    assert 4 <= renewals <= 10


def test_old_pods_count_less_than_recent_ones() -> None:
    learner = MixLearner()
    for ask, times in ((ONE, 10_000), (HALF, 20_000)):
        for _ in range(times):
            learner.count((ask, ()))
    pods = {demand.ask: demand.pods for demand in learner.mix((2,), (10,)).demands}
    assert pods[HALF] > 4 * pods[ONE]
    assert sum(pods.values()) <= 16_384


def test_packing_changes_its_policy_with_the_mix() -> None:
    here, packing = cluster(a=2), Packing("residue")
    first = packing.policy
    for at in range(40):
        packing.count(here, request(HALF, str(at)))
    assert packing.policy is not first
    assert packing.policy.name == "residue"
