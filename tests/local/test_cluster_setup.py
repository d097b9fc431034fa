"""Before a start everything is checked; nothing is created when it is refused."""

from pathlib import Path

import pytest

from gpupool.local import wall
from gpupool.local.cluster_setup import Prepared, Running, Wish, fingerprint, set_up_directory
from gpupool.local.home import CannotUse, Home
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
