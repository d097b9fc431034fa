"""`gpupool replay --timed`: waiting jobs, with and without room that is kept for them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.replay import command
from gpupool.replay.load import at_load
from gpupool.replay.synthetic import large_trace, synthetic_trace
from gpupool.replay.timed import replay_timed
from gpupool.replay.timed_figures import timed_figures
from gpupool.replay.trace import Job, Machine, Trace, TraceError, node_of, pod_of


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
    pairs = zip(record.decisions, record.waits_s, strict=True)
    return {trace.pods[decision.pod].request.name: wait for decision, wait in pairs}


def test_a_large_pod_does_not_wait_for_the_end_of_a_stream_of_small_ones() -> None:
    trace = trace_of([*stream(40_000), job("large", 4, 1000, 500)])
    assert waits(trace, reserves=False)["large"] > 38_000
    assert waits(trace, reserves=True)["large"] < 2_000


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
    trace = at_load(large_trace(8), 1.1)
    record = replay_timed(trace, "residue", lambda _: None)
    figures = timed_figures(trace, record)
    assert figures["never_placed"] == 0
    assert figures["reservations_made"] > 0
    assert sum(group["pods"] for group in figures["by_cards"]) == len(trace.pods)
    assert figures["makespan_s"] >= max(pod.arrives_s or 0 for pod in trace.pods)
    assert figures["wait_mean_s"] <= figures["wait_p99_s"]
    assert figures["slowdown"] >= 1


@pytest.mark.parametrize("load", [0.5, 1.0])
def test_so_much_is_asked_for_at_once_in_the_second_half(load: float) -> None:
    trace = at_load(synthetic_trace(20), load)
    end = max(pod.arrives_s or 0 for pod in trace.pods)
    asked = [
        sum(
            pod.gpu_milli
            for pod in trace.pods
            if (pod.arrives_s or 0) <= now < (pod.arrives_s or 0) + (pod.runs_s or 0)
        )
        for now in range(end // 2, end, max(1, end // 400))
    ]
    assert sum(asked) / len(asked) / trace.capacity_milli == pytest.approx(load, rel=0.05)


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
