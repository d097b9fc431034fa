"""`gpupool replay --timed`: waiting jobs, with and without room that is kept for them."""

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.replay import command
from gpupool.engine.last_places import LEFT_S
from gpupool.replay import timed_stage
from gpupool.replay.load import at_load
from gpupool.replay.synthetic import large_trace, synthetic_trace
from gpupool.replay.timed import replay_timed
from gpupool.replay.timed_figures import timed_figures
from gpupool.replay.trace import Job, Machine, Trace, TraceError, Window, node_of, pod_of


def trace_of(jobs: list[Job], nodes: int = 1, cards: int = 4) -> Trace:
    machines = [Machine(f"n{at}", 96_000, 393_216, cards, "G") for at in range(nodes)]
    return Trace("made", tuple(map(node_of, machines)), tuple(map(pod_of, jobs)))


def job(name: str, cards: int, arrives_s: int, runs_s: int, gang: str = "") -> Job:
    return Job(name, 1000, 1024, cards, 1000, (), arrives_s, runs_s, gang)


def stream(until_s: int) -> list[Job]:
    """Small pods that always find a free card, and never leave all cards free at once."""
    return [job(f"s{at}", 1, at, 360) for at in range(0, until_s, 90)]


def waits(trace: Trace, *, reserves: bool) -> dict[str, int]:
    record = replay_timed(trace, "best-fit", lambda _: None, reserves=reserves)
    return {trace.pods[wait.pod].request.name: wait.waited_s for wait in record.waits}


def test_a_large_pod_does_not_wait_for_the_end_of_a_stream_of_small_ones() -> None:
    trace = trace_of([*stream(40_000), job("large", 4, 1000, 500)])
    assert waits(trace, reserves=False)["large"] > 38_000
    assert waits(trace, reserves=True)["large"] < 2_000


def test_room_beside_a_pod_that_stays_is_not_kept_for_ever() -> None:
    """One card of four is held for a week. The others wait for a pod of four cards by turns."""
    week_s = 7 * 86_400
    jobs = [job("stays", 1, 0, week_s), job("large", 4, 10, 100)]
    jobs += [job(f"small-{at}", 1, 20 + 600 * at, 1_200) for at in range(1_000)]
    found = waits(trace_of(jobs), reserves=True)
    assert found["large"] < week_s + 3_600
    waited = [found[f"small-{at}"] for at in range(500)]  # they come in the first three days
    assert statistics.median(waited) < 4 * 3_600


def test_room_that_is_given_up_is_for_those_that_wait_before_new_ones() -> None:
    week_s = 7 * 86_400
    jobs = [job("stays", 1, 0, week_s), job("large", 2, 10, 100)]
    jobs += [job(f"never-{at}", 3, at, 1) for at in (2_000, 20_000)]  # somebody looks then
    jobs += [job("first", 1, 3_000, week_s), job("new", 1, 20_100, 1)]
    found = waits(trace_of(jobs, cards=2), reserves=True)
    assert found["first"] == 17_000
    assert found["new"] > week_s / 2


def test_a_gang_starts_whole_under_the_same_stream() -> None:
    gang = [job(f"g{at}", 4, 1000, 500, "g") for at in range(2)]
    small = [
        job(f"{each.name}-{at}", 1, each.arrives_s or 0, 360)
        for each in stream(40_000)
        for at in (0, 1)
    ]
    trace = trace_of([*small, *gang], nodes=2)
    found = waits(trace, reserves=True)
    assert found["g0"] == found["g1"] < 5_000
    assert waits(trace, reserves=False)["g0"] > 38_000


def test_nobody_waits_for_ever() -> None:
    trace = replace(at_load(large_trace(8), 1.1), window=None)  # to the last pod
    record = replay_timed(trace, "residue", lambda _: None)
    figures = timed_figures(trace, record)
    assert figures["never_placed"] == 0
    assert figures["reservations_made"] > 0
    assert sum(group["pods"] for group in figures["by_cards"]) == len(trace.pods)
    assert figures["makespan_s"] >= max(pod.arrives_s or 0 for pod in trace.pods)
    assert figures["wait_mean_s"] <= figures["wait_p99_s"]
    assert figures["slowdown"] >= 1


def asked_for(trace: Trace, begin_s: int, end_s: int) -> float:
    """The part of the GPUs that pods would hold in this time if none had to wait."""
    held = 0.0
    for pod in trace.pods:
        came = pod.arrives_s or 0
        held += pod.gpu_milli * max(0, min(end_s, came + (pod.runs_s or 0)) - max(begin_s, came))
    return held / trace.capacity_milli / (end_s - begin_s)


@pytest.mark.parametrize("load", [0.5, 1.0])
@pytest.mark.parametrize("longest_s", [0, 10_000_000])
def test_so_much_is_asked_for_in_each_part_of_the_stream(load: float, longest_s: int) -> None:
    """Also if most of the work is that of a few pods which run longer than the stream takes."""
    made = synthetic_trace(20)
    first = replace(made.pods[0], gpu_milli=1000, runs_s=longest_s)
    trace = at_load(replace(made, pods=(first, *made.pods[1:])), load)
    window = trace.window
    assert window is not None
    assert 0 < window.begin_s < window.end_s < window.stop_s
    middle_s = (window.begin_s + window.stop_s) // 2
    for part in ((window.begin_s, middle_s), (middle_s, window.stop_s)):
        assert asked_for(trace, *part) == pytest.approx(load, rel=0.06)


def test_what_ran_before_ends_when_it_would_have() -> None:
    short = [job(f"short-{at}", 1, 5 * at, 1) for at in range(10)]
    trace = at_load(trace_of([job("long", 1, 0, 1000), *short]), 1.0)
    old = [pod for pod in trace.pods if pod.ran_s]
    window = trace.window
    assert window is not None
    assert old
    for pod in old:
        assert pod.ran_s + (pod.runs_s or 0) == 1000
        assert 0 <= (pod.arrives_s or 0) < window.begin_s < (pod.arrives_s or 0) + (pod.runs_s or 0)


def test_only_pods_of_the_window_count_and_who_still_waits_counts_too() -> None:
    names = ("before", "holds", "starves", "after", "never")
    times = (0, 100, 150, 300, 120)
    cards = (1, 1, 1, 1, 5)
    jobs = [job(*each, runs_s=150) for each in zip(names, cards, times, strict=True)]
    jobs[1] = replace(jobs[1], runs_s=9000)
    trace = replace(trace_of(jobs, cards=1), window=Window(100, 200, 400))
    record = replay_timed(trace, "best-fit", lambda _: None)
    figures = timed_figures(trace, record)
    # "holds" waited for 50 s; "starves" for 250 s at least; "never" fits on no node.
    assert (figures["counted"], figures["placed"], figures["never_placed"]) == (2, 1, 1)
    assert figures["wait_mean_s"] == 150
    assert figures["wait_p99_s"] == 250
    assert figures["allocated"] == 100


def test_half_of_the_gpu_of_large_jobs_is_for_eight_cards_and_more() -> None:
    pods = large_trace(16).pods
    large = sum(pod.gpu_milli for pod in pods if pod.cards >= 8)
    assert large / sum(pod.gpu_milli for pod in pods) == pytest.approx(0.5, abs=0.03)
    assert any(pod.gang for pod in pods)


def test_a_load_needs_pods_that_end() -> None:
    with pytest.raises(TraceError, match="runs for ever"):
        at_load(trace_of([Job("p", 1000, 1024, 1, 1000, (), 0, None)]), 1.0)
    with pytest.raises(TraceError, match="with GPUs"):
        at_load(trace_of([job("p", 0, 0, 1)]), 1.0)
    with pytest.raises(TraceError, match="run for a time"):
        at_load(trace_of([job("p", 1, 0, 0)]), 1.0)


def test_both_runs_stand_beside_each_other(tmp_path: Path) -> None:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    nodes.write_text("name,cpu,memory,gpus\nn,64,256Gi,4\n", encoding="utf-8")
    rows = [f"{j.name},1,1Gi,{j.cards},{j.arrives_s},{j.runs_s},{j.gang}" for j in stream(4000)]
    rows += [f"g{at},1,1Gi,2,500,100,g" for at in range(2)]
    head = "name,cpu,memory,gpu,arrives_s,runs_s,gang"
    pods.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    picture = tmp_path / "plot.svg"
    arguments = [pods, "--nodes", nodes, "--timed", "--reservations", "both", "--plot", picture]
    result = CliRunner().invoke(command, [*map(str, arguments), "-o", "json"])
    assert result.exit_code == 0, result.output
    on, off = json.loads(result.stdout)["results"]
    assert (on["reservations"], off["reservations"]) == (True, False)
    assert on["multi_wait_p99_s"] < off["multi_wait_p99_s"]
    assert picture.read_text(encoding="utf-8").count("<polyline") == 6


def test_a_load_says_how_long_the_stream_is_and_who_counts() -> None:
    arguments = ["--synthetic", "2", "--timed", "--load", "80"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(CliRunner().invoke(command, [*arguments, "-o", "json"]).stdout)
    stream, (figures,) = found["stream"], found["results"]
    hours = {name: f"{seconds / 3600:.1f}" for name, seconds in stream.items()}
    assert f"a stream of {hours['ends_s']} h" in result.output
    assert f"from {hours['measured_from_s']} to {hours['measured_to_s']} h" in result.output
    assert figures["counted"] == sum(group["pods"] for group in figures["by_cards"])
    assert 0 < figures["counted"] < found["pods"]


def test_a_seed_makes_a_trace_of_its_own_where_pods_come_by_its_times() -> None:
    arguments = ["--synthetic", "2", "--timed", "--load", "80", "--seeds", "1:3"]
    found = json.loads(CliRunner().invoke(command, [*arguments, "-o", "json"]).stdout)["results"]
    assert [each["seed"] for each in found] == [1, 2]
    assert found[0]["wait_mean_s"] != found[1]["wait_mean_s"]
    shown = CliRunner().invoke(command, arguments).output
    assert "seed 1 (and 1 more, to seed 2): 2 nodes" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--synthetic", "2", "--load", "95"), "are for --timed"),
        (("--synthetic", "2", "--reservations", "off"), "are for --timed"),
        (("x.csv", "--large-jobs"), "does not exist"),
        (("--large-jobs",), "--large-jobs is for --synthetic"),
    ],
)
def test_options_that_do_not_fit_are_errors(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code != 0
    assert words in result.output


@pytest.fixture
def empty_nodes_are_last_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        timed_stage,
        "is_last_place",
        lambda cluster, pod, policy, found: (
            not cluster.state(found.node).pods and pod.gpus[0].whole == 1
        ),
    )


@pytest.mark.usefixtures("empty_nodes_are_last_places")
@pytest.mark.parametrize("arrives_s", [970, 500])  # 500: room is kept for it
def test_a_pod_that_leaves_the_last_place_to_others_runs_in_the_end(arrives_s: int) -> None:
    trace = trace_of([job("large", 8, 0, 1000), job("small", 1, arrives_s, 100)], cards=8)
    found = waits(trace, reserves=True)
    assert 1000 - arrives_s <= found["small"] <= 1000 - arrives_s + LEFT_S


@pytest.mark.usefixtures("empty_nodes_are_last_places")
def test_it_runs_as_soon_as_room_is_kept_for_it() -> None:
    jobs = [job("large", 8, 0, 1000), job("other", 8, 1, 20_000), job("small", 1, 900, 100)]
    jobs += [job("later", 8, 1_810, 100), job("last", 8, 2_000, 100)]
    assert waits(trace_of(jobs, nodes=2, cards=8), reserves=True)["small"] < 1_100
