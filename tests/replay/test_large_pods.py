"""Under churn, pods with several cards must get in: a small cluster with pods bound to a model."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from gpupool.engine import packing
from gpupool.replay import arrivals, run
from gpupool.replay.run import replay
from gpupool.replay.study import Method, outcomes
from gpupool.replay.synthetic import synthetic_trace
from gpupool.replay.trace import Job, Machine, Trace, node_of, pod_of


def small_trace() -> Trace:
    draw = Random(17)
    machines = [Machine(f"g{at}", 96_000, 393_216, 8, "G2") for at in range(24)]
    machines += [Machine(f"t{at}", 96_000, 393_216, 2, "T4") for at in range(30)]
    jobs = []
    for at in range(300):
        cards = draw.choices([1, 2, 4, 8], [91, 3, 2, 4])[0]
        milli = draw.choice([1000, 1000, 500, 250]) if cards == 1 else 1000
        models = draw.choices([(), ("T4",), ("G2",)], [70, 25, 5])[0] if cards == 1 else ()
        jobs.append(Job(f"p{at}", cards * 4_000, cards * 16_384, cards, milli, models))
    return Trace("small", tuple(map(node_of, machines)), tuple(map(pod_of, jobs)))


def crowded_trace() -> Trace:
    """Most pods take a share of a card, and pods without GPUs want a third of a machine's CPU."""
    draw = Random(17)
    machines = [Machine(f"g{at}", 96_000, 393_216, 8, "G2") for at in range(60)]
    kinds = {"share": (9_000, 1, 800), "host": (32_000, 0, 0), "large": (64_000, 8, 1000)}
    jobs = []
    for at in range(400):
        cpu, cards, milli = kinds[draw.choices(list(kinds), [74, 22, 1.3])[0]]
        jobs.append(Job(f"p{at}", cpu, 16_384 * max(cards, 1), cards, milli))
    return Trace("crowded", tuple(map(node_of, machines)), tuple(map(pod_of, jobs)))


def accepted(
    load: float, policy: str = "residue", trace: Trace | None = None, seeds: int = 2
) -> tuple[float, float]:
    """Percent of the GPU, and of the pods with several cards."""
    found = [
        outcome.figures
        for outcome in outcomes(
            trace or small_trace(), Method("churn", load), [policy], tuple(range(seeds)), _quiet
        )
    ]
    gpu, multi = (
        sum(each[name] for each in found) / len(found)
        for name in ("accepted_gpu", "accepted_multi_gpu")
    )
    return gpu, multi


def _quiet(decisions: int) -> None:
    pass


@pytest.mark.parametrize("load", [0.95, 1.0])
def test_large_pods_get_in_more_often_than_with_other_policies(load: float) -> None:
    gpu, multi = accepted(load)
    for other in ("fgd", "best-fit"):
        other_gpu, other_multi = accepted(load, other)
        assert multi > other_multi
        assert gpu > other_gpu - 1  # 30 small machines of one model: here best-fit has 0.5 more


def test_without_prices_less_gpu_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, _ = accepted(0.95)

    def no_prices(self: packing.Packing, cluster: object) -> None:
        self.policy = replace(self.policy, prices=None)

    monkeypatch.setattr(packing.Packing, "_renew_prices", no_prices)
    assert accepted(0.95)[0] < gpu - 1


def test_under_overload_pods_leave_places_to_larger_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = synthetic_trace(200)
    gpu, multi = accepted(1.1, trace=trace, seeds=4)
    monkeypatch.setattr(run, "is_last_place", lambda *_: False)
    gpu_before, multi_before = accepted(1.1, trace=trace, seeds=4)
    assert multi > multi_before + 5
    assert gpu > gpu_before - 0.5


def test_machines_whose_cpu_pods_without_gpus_take_are_not_kept_for_large_pods() -> None:
    """They stood idle: no large pod could come there, and small ones left them to it."""
    gpu, multi = accepted(1.1, trace=crowded_trace())
    other_gpu, other_multi = accepted(1.1, "best-fit", trace=crowded_trace())
    assert gpu > other_gpu + 1
    assert multi > other_multi + 20


def test_under_long_overload_no_size_is_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places for eight are broken by pods of two and four, too, and do not come together again."""
    monkeypatch.setattr(arrivals, "_WARM_UP", 9.0)
    trace = synthetic_trace(200)
    came, placed = Counter[int](), Counter[int]()
    for seed in (0, 1):
        made = arrivals.churn(trace, 1.1, seed)
        for at in replay(trace, made, "residue", _quiet).decisions[made.measured_from :]:
            came[trace.pods[at.pod].cards] += 1
            placed[trace.pods[at.pod].cards] += bool(at.node)
    assert all(placed[cards] > came[cards] / 4 for cards in (1, 2, 4, 8)), (placed, came)
