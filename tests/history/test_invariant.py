"""Whatever happens to pods, agents, clocks and the collector: what was given was used, idle or
unknown, and nothing else; and all kinds of series tell the same sums."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.cli.report_view import Report
from gpupool.core.gpu import CardShare
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.accounts import entries
from gpupool.history.collector import LONGEST_S, write
from gpupool.history.facts import Held, Moment, NodeFacts
from gpupool.history.reader import Points, Reader, Sums
from gpupool.history.series import Key, Kind
from gpupool.history.store import Store
from gpupool.history.usage import usage_of

START = 1_700_006_400
MINUTE = 60_000
NODES = {
    "n0": NodeFacts("pool-0", ("GPU-00", "GPU-01"), 30),
    "n1": NodeFacts("pool-1", ("GPU-10", "GPU-11"), 30),
}
BY = (Kind.NAMESPACE, Kind.USER, Kind.WORKLOAD, Kind.POOL)


@dataclass(frozen=True)
class Pod:
    number: int
    node: str
    card: int
    units: int
    from_ms: int
    until_ms: int | None  # it has ended then, and is still in the API; None: it goes on
    gone_ms: int  # from when on the API has it no more
    percent: int  # of the card's time: shares have no limit of compute

    def held(self, at_ms: int) -> Held | None:
        if not self.from_ms <= at_ms < self.gone_ms:
            return None
        uuid = f"GPU-{self.node[1:]}{self.card}"
        ended = self.until_ms if self.until_ms is not None and at_ms >= self.until_ms else None
        return Held(
            f"ns{self.number % 3}",
            f"p{self.number}",
            "main",
            f"u{self.number}",
            f"Deployment/d{self.number % 4}",
            ("ann", "", "bob")[self.number % 3],
            self.node,
            (CardShare(uuid, self.card, self.units, self.units * 1000, 15),),
            0,
            self.units,
            self.from_ms,
            ended,
        )


@dataclass(frozen=True)
class Step:
    """From one look to the next."""

    passes_ms: int  # may be negative: a clock is set
    silent: frozenset[str]  # agents that do not answer
    gone: frozenset[str]  # nodes that the API does not have
    restarts: bool  # the collector


times = st.integers(-3 * MINUTE, 30 * MINUTE).map(lambda ms: START * 1000 + ms)
pods = st.lists(
    st.builds(
        Pod,
        st.integers(0, 5),
        st.sampled_from(["n0", "n1", "nx"]),
        st.integers(0, 1),
        st.integers(1, 15),
        times,
        st.none() | times,
        times,
        st.integers(0, 100),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda pod: pod.number,
)
some_nodes = st.frozensets(st.sampled_from(sorted(NODES)))
steps = st.lists(
    st.builds(
        Step,
        st.sampled_from([MINUTE, MINUTE, 61_234, 999, 170_000, 20 * MINUTE, -90_000, 0]),
        some_nodes,
        st.just(frozenset[str]()) | some_nodes,
        st.sampled_from([False, False, True]),
    ),
    min_size=1,
    max_size=14,
)


def use(pod: Pod, at_ms: int) -> ContainerUse:
    held = pod.held(at_ms)
    assert held is not None
    idle_s = 0.0 if pod.percent else max(0, at_ms - pod.from_ms) / 1000
    return ContainerUse(
        held.namespace, held.pod, "main", 900, uid=held.uid, sm_percent=pod.percent, idle_s=idle_s
    )


def moment(at_ms: int, step: Step, pods: Sequence[Pod]) -> Moment:
    nodes = {name: facts for name, facts in NODES.items() if name not in step.gone}
    held = {pod.number: pod.held(at_ms) for pod in pods}
    cards = {
        uuid: CardReading(
            uuid,
            900,
            sm_percent=100,  # somebody outside of pods works as well
            containers=tuple(
                use(pod, at_ms)
                for pod in pods
                if held[pod.number] and pod.node == name and f"GPU-{name[1:]}{pod.card}" == uuid
            ),
        )
        for name, facts in nodes.items()
        if name not in step.silent
        for uuid in facts.cards
    }
    found = {(each.uid, "main"): each for each in held.values() if each}
    return Moment(at_ms, nodes, found, cards, dict.fromkeys(nodes, at_ms / 1000))


@settings(max_examples=60, deadline=None)
@given(pods, steps)
def test_what_was_given_was_used_or_idle_or_is_unknown(
    tmp_path_factory: pytest.TempPathFactory, pods: list[Pod], steps: list[Step]
) -> None:
    path = tmp_path_factory.mktemp("history") / "history.sqlite"
    store, now, last = Store(path), START * 1000, None
    for step in steps:
        now += step.passes_ms
        seen = moment(now, step, pods)
        if step.restarts:
            store.close()
            store, last = Store(path), None
        if last is not None and 0 < seen.at_ms - last.at_ms <= LONGEST_S * 1000:
            write(store, last, seen)
        last = seen
    store.close()
    reader = Reader(path, lambda: now / 1000)
    for since_s in (START - 600, START - 40 * 86400):  # of minutes, and of hours
        sums = {kind: reader.sums(kind, since_s, START + 86400) for kind in BY}
        for found in sums.values():
            check_partition(found)
        check_totals(sums)
    reader.close()


def check_partition(sums: Sums) -> None:
    for series, sample in sums.of:
        usage = usage_of(series.name, sample)
        parts = usage.used + usage.idle + usage.unknown
        assert usage.given == pytest.approx(parts, abs=1e-9), (series.name, usage)
        assert min(usage.used, usage.idle, usage.unknown) >= 0, (series.name, usage)


def check_totals(sums: dict[Kind, Sums]) -> None:
    """Each report has the same total, and its total is the sum of its lines."""
    totals = []
    for kind, found in sums.items():
        rows = [usage_of(series.name, sample) for series, sample in found.of]
        report = Report(kind, 1, 0, 1, rows, None, Points(60, 0, ()), [], []).document()
        total = report["total"]
        for name in ("given", "used", "idle", "unknown"):
            items = sum(item[f"{name}GpuHours"] for item in report["items"])
            assert total[f"{name}GpuHours"] == pytest.approx(items, abs=1e-3)
        for item in (total, *report["items"]):
            rest = sum(item[f"{name}GpuHours"] for name in ("used", "idle", "unknown"))
            assert item["givenGpuHours"] == pytest.approx(rest, abs=1e-9)
        totals.append([total[f"{name}GpuHours"] for name in ("given", "used", "idle", "unknown")])
    assert all(each == pytest.approx(totals[0], abs=1e-4) for each in totals), dict(
        zip(sums, totals, strict=True)
    )


def test_a_card_at_two_fifths_is_idle_for_three() -> None:
    pod = Pod(0, "n0", 0, 15, START * 1000, None, START * 1000 + 9 * MINUTE, 40)
    quiet = Step(0, frozenset(), frozenset(), False)
    before, after = (moment(START * 1000 + n * MINUTE, quiet, [pod]) for n in (0, 1))
    for key, entry in entries(before, after).items():
        if key.kind in BY and entry.sample.given:
            usage = usage_of("", entry.sample)
            assert usage.used == pytest.approx(0.4 / 60), key
            assert usage.idle == pytest.approx(0.6 / 60), key


def test_what_a_share_uses_beyond_its_part_takes_nothing_from_others() -> None:
    greedy = Pod(0, "n0", 0, 3, START * 1000, None, START * 1000 + 9 * MINUTE, 50)
    lazy = replace(greedy, number=3, percent=0)  # of the same namespace
    quiet = Step(0, frozenset(), frozenset(), False)
    before, after = (moment(START * 1000 + n * MINUTE, quiet, [greedy, lazy]) for n in (0, 1))
    usage = usage_of("", entries(before, after)[Key(Kind.NAMESPACE, "ns0")].sample)
    assert usage.given == pytest.approx(0.4 / 60)
    assert usage.used == pytest.approx(0.2 / 60)  # its whole part; the lazy one's is idle
    assert usage.idle == pytest.approx(0.2 / 60)
    assert usage.beyond == pytest.approx(0.3 / 60)
