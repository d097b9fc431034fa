"""Before a start everything is checked; nothing is created when it is refused."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpupool.local import wall
from gpupool.local.cluster_setup import Prepared, Running, Wish, fingerprint, set_up_directory
from gpupool.local.deletion import delete_cluster
from gpupool.local.home import CannotUse, Home
from gpupool.local.machines import Machines, Wanted
from localkube.data_directory import Lock

HEAD = "apiVersion: gpupool.io/v1alpha1\nkind: Cluster\n"


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "my.yaml"
    path.write_text(HEAD + text)
    return path


def ready(home: Home, wish: Wish) -> Prepared:
    prepared = set_up_directory(home, wish)
    assert isinstance(prepared, Prepared)
    return prepared


def pools(count: int) -> str:
    return f"pools: [{{name: a, instanceType: ecs.g6.large, count: {count}}}]\n"


def test_without_flags_it_is_the_default_cluster(home: Home) -> None:
    prepared = ready(home, Wish(port=0))
    assert prepared.settings.name == "default"
    assert len(prepared.settings.spec.pools) == 5
    assert prepared.settings.apply_spec


def test_the_name_comes_from_the_flag_then_from_the_file(home: Home, tmp_path: Path) -> None:
    file = config(tmp_path, "name: from-file\npools: []\n")
    assert ready(home, Wish(config=file, port=0)).cluster.name == "from-file"
    assert ready(home, Wish(name="flag", config=file, port=0)).cluster.name == "flag"


def test_a_cluster_keeps_its_file(home: Home, tmp_path: Path) -> None:
    file = config(tmp_path, pools(3))
    ready(home, Wish(config=file, port=0))
    file.unlink()
    assert ready(home, Wish(port=0)).settings.spec.pools[0].count == 3


def test_a_file_is_applied_when_it_is_new(home: Home, tmp_path: Path) -> None:
    first = ready(home, Wish(config=config(tmp_path, pools(3)), port=0))
    assert first.settings.apply_spec
    text = first.cluster.cluster_file.read_text()
    first.cluster.write_state({"port": 0, "applied": fingerprint(text)})
    assert not ready(home, Wish(port=0)).settings.apply_spec
    assert ready(home, Wish(config=config(tmp_path, pools(4)), port=0)).settings.apply_spec


def test_the_choice_of_cards_is_kept(home: Home) -> None:
    first = ready(home, Wish(port=0))
    assert not first.settings.real_gpus
    assert ready(home, Wish(port=0, gpus="real")).settings.real_gpus
    first.cluster.write_state({"port": 0, "gpus": "real"})
    assert ready(home, Wish(port=0)).settings.real_gpus
    assert not ready(home, Wish(port=0, gpus="simulated")).settings.real_gpus


def test_the_wish_for_a_wall_is_kept(home: Home) -> None:
    first = ready(home, Wish(port=0))
    assert not first.settings.wall_required
    first.cluster.write_state({"port": 0, "sandbox": "required"})
    assert ready(home, Wish(port=0)).settings.wall_required
    assert not ready(home, Wish(port=0, sandbox="auto")).settings.wall_required


def test_a_cluster_that_must_have_a_wall_is_refused_where_there_is_none(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wall, "missing_wall", lambda directory: "unshare: not permitted")
    with pytest.raises(CannotUse, match="allows no wall around containers \\(unshare: not perm"):
        set_up_directory(home, Wish(port=0, sandbox="required"))
    assert home.clusters() == []
    assert "read and change every file that you can" in wall.warning()
    ready(home, Wish(port=0))


def test_a_bad_file_changes_nothing(home: Home, tmp_path: Path) -> None:
    with pytest.raises(CannotUse) as refused:
        set_up_directory(home, Wish(config=config(tmp_path, "pool: []\n")))
    assert str(refused.value).splitlines() == [
        "2 problems in the cluster file; nothing was changed.",
        f'{tmp_path}/my.yaml:1:1: the field "pools" is missing',
        f'{tmp_path}/my.yaml:3:1: pool: unknown field; did you mean "pools"?',
    ]
    assert home.clusters() == []


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x00"])
def test_a_file_that_is_no_text_is_refused(home: Home, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(CannotUse):
        set_up_directory(home, Wish(config=tmp_path / "x"))


def test_a_directory_as_cluster_file_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(CannotUse, match="Is a directory"):
        set_up_directory(home, Wish(config=tmp_path))


def test_too_many_nodes_are_refused_before_anything_is_made(home: Home, tmp_path: Path) -> None:
    with pytest.raises(CannotUse) as refused:
        set_up_directory(home, Wish(config=config(tmp_path, pools(50))))
    assert str(refused.value).splitlines() == [
        "Nothing was started.",
        "quota nodes-per-cluster is 40: 0 used, 50 wanted. "
        "Raise it with: gpupool quota set nodes-per-cluster=50",
        "quota routes-per-cluster is 48: 0 used, 50 wanted. "
        "Raise it with: gpupool quota set routes-per-cluster=50",
    ]
    assert home.clusters() == []
    home.write_quota_changes({"nodes-per-cluster": 50, "routes-per-cluster": 50})
    ready(home, Wish(config=config(tmp_path, pools(50)), port=0))


def test_the_sixth_cluster_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcde":
        ready(home, Wish(name=name, port=0))
    with pytest.raises(CannotUse, match="quota clusters is 5: 5 used, 6 wanted"):
        set_up_directory(home, Wish(name="f", port=0))
    assert len(home.clusters()) == 5
    ready(home, Wish(name="e", port=0))  # an old one still starts
    monkeypatch.setenv("GPUPOOL_QUOTA_CLUSTERS", "6")
    ready(home, Wish(name="f", port=0))


def test_a_quota_is_raised_for_a_cluster_that_runs(home: Home) -> None:
    settings = ready(home, Wish(port=0)).settings
    assert settings.quotas().nodes_per_cluster == 40
    home.write_quota_changes({"nodes-per-cluster": 100})
    assert settings.quotas().nodes_per_cluster == 100


def test_a_cluster_that_runs_is_left_alone(home: Home, tmp_path: Path) -> None:
    cluster = ready(home, Wish(port=0)).cluster
    before = cluster.cluster_file.read_text()
    with Lock(cluster.path):
        assert isinstance(set_up_directory(home, Wish(config=config(tmp_path, pools(1)))), Running)
    assert cluster.cluster_file.read_text() == before


def test_a_cluster_does_not_move(home: Home, tmp_path: Path) -> None:
    ready(home, Wish(port=0, data_dir=tmp_path / "here"))
    ready(home, Wish(port=0, data_dir=tmp_path / "here"))
    with pytest.raises(CannotUse, match=r"lives in .*here, not in .*there"):
        set_up_directory(home, Wish(port=0, data_dir=tmp_path / "there"))


def test_a_directory_that_others_may_read_now_is_refused(home: Home) -> None:
    cluster = ready(home, Wish(port=0)).cluster
    cluster.path.chmod(0o755)
    with pytest.raises(CannotUse, match="not private: wanted mode 0700, found mode 0755"):
        set_up_directory(home, Wish(port=0))


OF_MACHINES = "pools: [{name: a, instanceType: ecs.g6.large, count: 2, machines: [m1, m2]}]\n"


def owners(home: Home) -> dict[str, str]:
    return {name: each.cluster for name, each in Machines(home).all().items()}


@pytest.fixture
def machines(home: Home) -> Machines:
    home.root.mkdir()
    found = Machines(home)
    found.add("ecs.g6.large", ["m1", "m2", "m3"])
    return found


@pytest.mark.usefixtures("machines")
def test_a_cluster_takes_its_machines_and_gives_them_back(home: Home, tmp_path: Path) -> None:
    ready(home, Wish(name="x", config=config(tmp_path, OF_MACHINES), port=0))
    assert owners(home) == {"m1": "x", "m2": "x", "m3": ""}
    with pytest.raises(CannotUse, match='"m1" is a node of cluster "x"') as refusal:
        ready(home, Wish(name="y", config=config(tmp_path, OF_MACHINES), port=0))
    assert refusal.value.message.startswith("Nothing was started.")
    assert home.find("y") is None
    delete_cluster(home, "x")
    assert set(owners(home).values()) == {""}


def test_a_start_with_a_file_that_was_applied_takes_no_machine(
    home: Home, machines: Machines, tmp_path: Path
) -> None:
    """Its pool was scaled down since, and another cluster has the machine."""
    first = ready(home, Wish(name="x", config=config(tmp_path, OF_MACHINES), port=0))
    text = first.cluster.cluster_file.read_text()
    first.cluster.write_state({"port": 0, "applied": fingerprint(text)})
    machines.release("x", ["m2"])
    home.make("y", None)
    machines.claim("y", (Wanted("a", "ecs.g6.large", ("m2",)),))
    ready(home, Wish(name="x", port=0))
    assert owners(home) == {"m1": "x", "m2": "y", "m3": ""}


@pytest.mark.usefixtures("machines")
def test_a_damaged_list_of_machines_does_not_stop_other_clusters(
    home: Home, tmp_path: Path
) -> None:
    (home.root / "machines.json").write_text("{")
    ready(home, Wish(name="x", config=config(tmp_path, pools(1)), port=0))
    delete_cluster(home, "x")
    with pytest.raises(CannotUse, match="is damaged"):
        ready(home, Wish(name="x", config=config(tmp_path, OF_MACHINES), port=0))


KILLED = """
import os, signal, sys
from pathlib import Path
from gpupool.local import cluster_setup, deletion
from gpupool.local.home import Home
from gpupool.local.machines import Machines

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

home, config = Home(Path(sys.argv[1])), Path(sys.argv[2])
if sys.argv[3] == "up":
    Home.make = die
    cluster_setup.set_up_directory(home, cluster_setup.Wish(name="x", config=config, port=0))
else:
    Machines.release = die
    deletion.delete_cluster(home, "x")
"""


def killed(home: Home, file: Path, command: str) -> None:
    """The command dies between its two writes: the machines, and the directory."""
    words = [sys.executable, "-c", KILLED, str(home.root), str(file), command]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL


@pytest.mark.usefixtures("machines")
def test_a_kill_between_two_writes_leaves_no_machine_behind(home: Home, tmp_path: Path) -> None:
    file = config(tmp_path, OF_MACHINES)
    killed(home, file, "up")
    assert home.find("x") is None
    assert set(owners(home).values()) == {""}
    ready(home, Wish(name="y", config=file, port=0))
    delete_cluster(home, "y")
    ready(home, Wish(name="x", config=file, port=0))
    killed(home, file, "reset")
    assert home.find("x") is None
    assert set(owners(home).values()) == {""}
    ready(home, Wish(name="x", config=config(tmp_path, pools(1)), port=0))
    assert set(owners(home).values()) == {""}, "a new cluster of that name has none of them"
