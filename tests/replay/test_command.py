"""`gpupool replay` on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpupool.cli.replay import command
from gpupool.engine.policies import POLICIES
from tests.replay.checking import faults, rows


def invoked(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def run(*arguments: object, code: int = 0) -> str:
    return invoked(*arguments, code=code).output


def results(*arguments: object) -> list[dict[str, Any]]:
    document = json.loads(invoked(*arguments, "-o", "json").stdout)
    found: list[dict[str, Any]] = document["results"]
    return found


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("way", [(), ("--churn", "90")], ids=["filling", "churn"])
def test_placements_pass_an_independent_check(
    policy: str, way: tuple[str, ...], pods_file: Path, nodes_file: Path, tmp_path: Path
) -> None:
    written = tmp_path / "placements.csv"
    files = (pods_file, "--nodes", nodes_file)
    run(*files, "--policy", policy, "--placements", written, *way)
    assert len(rows(written)) > 20
    assert any(row["node"] for row in rows(written))
    assert any(not row["node"] for row in rows(written))
    assert not faults(pods_file, nodes_file, written)


def test_the_independent_check_finds_a_card_that_is_given_twice(
    pods_file: Path, nodes_file: Path, tmp_path: Path
) -> None:
    written = tmp_path / "placements.csv"
    pod = next(row["name"] for row in rows(pods_file) if row["gpu_milli"] == "810")
    written.write_text(f"arrival,pod,node,cards\n1,{pod},n0,0\n2,{pod},n0,0\n", encoding="utf-8")
    assert faults(pods_file, nodes_file, written)


def test_json_has_the_figures_of_every_policy_and_seed(pods_file: Path, nodes_file: Path) -> None:
    files = (pods_file, "--nodes", nodes_file)
    found = results(*files, "--policy", "residue", "--policy", "best-fit", "--seeds", "0:2")
    assert [(each["policy"], each["seed"]) for each in found] == [
        ("residue", 0),
        ("residue", 1),
        ("best-fit", 0),
        ("best-fit", 1),
    ]
    for each in found:
        assert 0 < each["alloc_at_100"] <= each["alloc_at_130"] <= 100
        assert 0 < each["auc"] < 100
        assert each["decisions_per_s"] > 0


def test_the_same_seed_gives_the_same_placements(
    pods_file: Path, nodes_file: Path, tmp_path: Path
) -> None:
    written = [tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"]
    for path, seed in zip(written, (1, 1, 2), strict=True):
        run(pods_file, "--nodes", nodes_file, "--seeds", seed, "--placements", path)
    texts = [path.read_text(encoding="utf-8") for path in written]
    assert texts[0] == texts[1] != texts[2]


def test_arrivals_come_in_the_order_of_the_file(
    pods_file: Path, nodes_file: Path, tmp_path: Path
) -> None:
    order = ["p3", "p1", "p3", "p2"]
    arrivals, written = tmp_path / "arrivals.txt", tmp_path / "placements.csv"
    arrivals.write_text("\n".join(order) + "\n", encoding="utf-8")
    files = (pods_file, "--nodes", nodes_file, "--arrivals", arrivals)
    [found] = results(*files, "--placements", written)
    assert [row["pod"] for row in rows(written)] == order
    assert found["seed"] is None
    assert found["alloc_at_100"] is None


def test_the_title_counts_one_node_as_one() -> None:
    assert "1 node, 4 cards, 6 pods; filling" in run("--synthetic", "1")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    node = {"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "1"}}}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": [node, pod]}))
    return file


def test_a_snapshot_is_not_asked_for_columns_of_times_alone(snapshot: Path) -> None:
    assert "a snapshot of a cluster has no times" in run(snapshot, "--timed", code=1)


def test_nodes_that_would_not_be_used_are_refused(snapshot: Path, nodes_file: Path) -> None:
    words = f"leave --nodes {nodes_file} out"
    assert words in run(snapshot, "--nodes", nodes_file, code=1)


def test_a_timed_replay_shows_waiting_pods(pods_file: Path, nodes_file: Path) -> None:
    [found] = results(pods_file, "--nodes", nodes_file, "--timed")
    assert found["placed"] + found["never_placed"] == 60
    assert found["waited"] > 0
    assert found["wait_mean_s"] > 0


def test_a_synthetic_trace_is_replayed_and_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "plot.svg"
    shown = run("--synthetic", "12", "--policy", "residue", "--policy", "spread", "--plot", picture)
    assert "ALLOC-AT-100" in shown
    assert f"The curves are in {picture}." in shown
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.count("<polyline") == 4
    assert ">25</text>" in drawn, "round numbers along the axes"
    assert ">125</text>" in drawn


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Name a file of pods"),
        (("--synthetic", "2", "--policy", "x"), 'there is no policy "x"; there are residue'),
        (("--synthetic", "2", "--seeds", "5:2"), "seeds: wanted"),
        (("--synthetic", "2", "--churn", "90", "--timed"), "exclude one another"),
        (("--synthetic", "2", "--seeds", "0:2", "--placements", "x.csv"), "one seed at a time"),
        ((str(Path(__file__)), "--timed", "--seeds", "0:2"), "nothing is random"),
    ],
)
def test_bad_options_are_errors_with_a_message(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code != 0
    assert words in result.output
    assert "Traceback" not in result.output


def test_a_picture_of_another_kind_is_refused_before_the_replay(tmp_path: Path) -> None:
    shown = run("--synthetic", "2", "--plot", tmp_path / "p.pdf", code=1)
    assert "Name a file that ends with .svg." in " ".join(shown.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--plot", "--placements"])
def test_a_file_in_no_directory_is_refused_before_the_replay(option: str, tmp_path: Path) -> None:
    shown = run("--synthetic", "2", option, tmp_path / "missing" / "x", code=1)
    assert "wanted a path in a directory that exists" in " ".join(shown.split())


def test_the_figures_are_shown_though_the_plot_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    arguments = ["--synthetic", "2", "--plot", str(tmp_path / "plot.svg")]
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, OSError)
    assert "residue" in result.stdout
