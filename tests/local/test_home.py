"""The home of clusters: names, directories, and foreign files that stay untouched."""

from pathlib import Path

import pytest

from gpupool.local import home as home_module
from gpupool.local.home import CannotUse, Home, check_name
from localkube.data_directory import Lock


def test_a_home_that_is_not_there_has_no_clusters(tmp_path: Path) -> None:
    assert Home(tmp_path / "none").clusters() == []


def test_several_clusters_can_exist(home: Home) -> None:
    assert [home.make(name, None).path.name for name in ("b", "a")] == ["b", "a"]
    assert [cluster.name for cluster in home.clusters()] == ["a", "b"]


def test_a_cluster_directory_is_private(home: Home) -> None:
    assert home.make("a", None).path.stat().st_mode & 0o777 == 0o700


def test_a_cluster_can_live_elsewhere(home: Home, tmp_path: Path) -> None:
    home.make("a", tmp_path / "big disk" / "a")
    found = home.existing("a")
    assert found.path == tmp_path / "big disk" / "a"
    home.delete(found)
    assert not found.path.exists()
    assert home.clusters() == []


@pytest.mark.parametrize("where", ["aaa", "aaa/pods/x", "."])
def test_a_directory_has_one_cluster(home: Home, tmp_path: Path, where: str) -> None:
    home.make("aaa", tmp_path / "data" / "aaa")
    (tmp_path / "data" / ".gpupool").touch()  # as if the one around it were of gpupool, too
    with pytest.raises(CannotUse, match='the data of cluster "aaa"'):
        home.make("bbb", tmp_path / "data" / where)
    assert [cluster.name for cluster in home.clusters()] == ["aaa"]


def test_a_directory_that_a_cluster_of_another_home_uses_is_refused(
    home: Home, tmp_path: Path
) -> None:
    other = Home(tmp_path / "other").make("aaa", tmp_path / "data")
    with Lock(other.path), pytest.raises(CannotUse, match="is in use by process"):
        home.make("bbb", other.path)
    assert home.clusters() == []
    assert home.make("bbb", other.path).path == other.path, "once it is stopped, it can be had"


def test_a_directory_with_other_things_in_it_is_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(CannotUse, match="not of gpupool's making"):
        home.make("a", tmp_path)
    assert home.clusters() == []
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_directory_that_others_can_read_is_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(CannotUse, match="not private"):
        home.make("a", tmp_path / "open")


def test_a_link_to_a_vanished_directory_is_no_cluster(home: Home, tmp_path: Path) -> None:
    cluster = home.make("a", tmp_path / "gone")
    for entry in cluster.path.iterdir():
        entry.unlink()
    cluster.path.rmdir()
    assert home.clusters() == []
    assert home.make("a", None).path.is_dir()


def test_deleting_does_not_follow_links(home: Home, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    cluster = home.make("a", None)
    (cluster.path / "link").symlink_to(tmp_path / "outside")
    home.delete(cluster)
    assert (tmp_path / "outside" / "file").exists()


def test_an_unknown_cluster_is_named_with_the_known_ones(home: Home) -> None:
    home.make("a", None)
    with pytest.raises(CannotUse, match=r'There is no cluster "b"\. Clusters here: a'):
        home.existing("b")


@pytest.mark.parametrize("name", ["a", "a-b", "0", "a" * 40])
def test_good_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "..", "a/b", "a" * 41, "ä", "a\n"])
def test_bad_names(name: str) -> None:
    with pytest.raises(CannotUse, match="cannot be the name of a cluster"):
        check_name(name)


def test_where_home_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPOOL_HOME", "/x")
    assert home_module.home().root == Path("/x")
    monkeypatch.delenv("GPUPOOL_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert home_module.home().root == Path("/state/gpupool")
    monkeypatch.setenv("XDG_STATE_HOME", "relative: to be ignored")
    assert home_module.home().root == Path.home() / ".local" / "state" / "gpupool"


def test_a_damaged_state_file_says_what_to_do(home: Home) -> None:
    cluster = home.make("a", None)
    cluster.state_file.write_text("{")
    with pytest.raises(CannotUse, match=r"state\.json is damaged: .* Delete it"):
        cluster.state()
