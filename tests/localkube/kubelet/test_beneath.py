"""Paths that others change: resolved once, by the kernel or in steps, with the same outcome."""

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.kubelet import beneath, usage
from localkube.kubelet.beneath import LeadsOut, directory_in, make_beneath, open_beneath, opened
from localkube.kubelet.container_files import ContainerFiles
from localkube.kubelet.volume_files import VolumeFile, writing
from localkube.removal import remove_tree

MISSING_CALL = 9999


@pytest.fixture(params=["openat2", "in steps"])
def root(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[int]:
    """A directory with links of all kinds; without openat2 the second time."""
    if request.param == "in steps":
        monkeypatch.setattr(beneath, "_SYS_OPENAT2", MISSING_CALL)
    place = tmp_path / "root"
    (place / "a/b").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    links = {
        "inside": "a/b",
        "up-and-in": "a/../a/b",
        "absolute": "/a/b",
        "out": "../outside",
        "a/out": "../../outside",
        "machine": str(tmp_path / "outside"),
        "loop": "loop",
        "nowhere": "missing",
        "magic": "/proc/self/root",
    }
    for name, target in links.items():
        (place / name).symlink_to(target)
    with opened(os.open(place, os.O_PATH)) as descriptor:
        yield descriptor


def where(descriptor: int, root: int) -> str:
    with opened(descriptor):
        found = os.readlink(f"/proc/self/fd/{descriptor}")
    return os.path.relpath(found, os.readlink(f"/proc/self/fd/{root}"))


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [("a/b", "a/b"), ("inside", "a/b"), ("up-and-in", "a/b"), ("a/../inside/.", "a/b"), ("", ".")],
)
def test_links_that_stay_inside_are_followed(root: int, path: str, leads_to: str) -> None:
    assert where(open_beneath(root, path), root) == leads_to


@pytest.mark.parametrize(
    "path", ["out", "a/out", "absolute", "machine", "..", "a/../..", "/a", "out/x", "magic"]
)
def test_what_leads_out_is_refused(root: int, path: str, tmp_path: Path) -> None:
    with pytest.raises(LeadsOut):
        open_beneath(root, path)
    with pytest.raises(LeadsOut):
        make_beneath(root, f"{path}/new")
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [("absolute", "a/b"), ("/a/b", "a/b"), ("../../a", "a"), ("inside/../../../..", ".")],
)
def test_a_root_is_left_by_no_link(root: int, path: str, leads_to: str) -> None:
    assert where(open_beneath(root, path, as_root=True), root) == leads_to


def test_loops_and_links_that_are_not_wanted_are_refused(root: int) -> None:
    for path, links in (("loop", True), ("inside", False)):
        with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
            open_beneath(root, path, links=links)


def test_what_is_missing_is_made_but_not_through_a_link_to_nothing(root: int) -> None:
    assert where(make_beneath(root, "inside/new/er"), root) == "a/b/new/er"
    assert where(make_beneath(root, "a/file", is_file=True), root) == "a/file"
    with pytest.raises(LeadsOut):
        make_beneath(root, "nowhere/new")
    with pytest.raises(OSError, match="NUL"):
        open_beneath(root, "a\0b")


def test_a_path_deeper_than_pythons_stack_is_made(root: int, tmp_path: Path) -> None:
    deep = "/".join(["d"] * 1200)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("in steps, each name on the way takes a descriptor")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    try:
        os.close(make_beneath(root, deep))
        os.close(open_beneath(root, deep))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        remove_tree(tmp_path / "root")  # pytest could not


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A volume of the server in which somebody has put links to a file and to a directory outside
    of it."""
    outside, made = tmp_path / "outside", tmp_path / "volume"
    outside.mkdir()
    (outside / "key").write_text("secret")
    made.mkdir()
    for name in ("key", "..key.new", "deep", "other"):
        (made / name).symlink_to(outside / ("" if name == "deep" else "key"))
    yield made
    assert [path.name for path in outside.iterdir()] == ["key"]
    assert (outside / "key").read_text() == "secret"


def test_the_servers_files_replace_links(volume: Path) -> None:
    files = {"key": VolumeFile(b"1", 0o644), "deep/key": VolumeFile(b"2", 0o600)}
    list(writing(volume, files))
    assert {str(p.relative_to(volume)) for p in volume.rglob("*")} == {"key", "deep", "deep/key"}
    assert not (volume / "key").is_symlink()
    assert (volume / "deep/key").read_bytes() == b"2"


def test_a_link_with_the_right_content_is_replaced_too(volume: Path) -> None:
    list(writing(volume, {"key": VolumeFile(b"secret", 0o644)}))
    assert not (volume / "key").is_symlink()


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    os.mkfifo(tmp_path / "..a.new")
    list(writing(tmp_path, {"a": VolumeFile(b"1", 0o644)}))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"1")]


def test_a_directory_takes_the_place_of_whatever_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    (tmp_path / "file").write_text("")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    with opened(os.open(tmp_path, os.O_RDONLY)) as parent:
        for name in ("link", "file", "closed", "new"):
            os.close(directory_in(parent, name))
    assert all(path.is_dir() and not path.is_symlink() for path in tmp_path.iterdir())


def test_a_tree_is_removed_however_deep_it_is_and_no_link_is_followed(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    (outside / "kept").mkdir(parents=True)
    tree.mkdir()
    with opened(os.open(tree, os.O_PATH)) as root:
        os.close(make_beneath(root, "/".join(["d"] * 1200)))
    (tree / "d/link").symlink_to(outside)
    (tree / "closed/inner").mkdir(parents=True)
    (tree / "closed/inner").chmod(0o000)
    (tree / "closed").chmod(0o000)
    remove_tree(tree)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").is_dir()


def test_a_link_in_place_of_a_tree_is_removed_alone(tmp_path: Path) -> None:
    (tmp_path / "outside/kept").mkdir(parents=True)
    (tmp_path / "tree").symlink_to(tmp_path / "outside")
    remove_tree(tmp_path / "tree")
    assert [path.name for path in tmp_path.rglob("*")] == ["outside", "kept"]


def test_a_tree_is_measured_however_deep_it_is(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "large").write_bytes(b"x" * 100_000)
    with opened(os.open(tree, os.O_PATH)) as root:
        os.close(make_beneath(root, "/".join(["d"] * 1200)))
    (tree / "d/file").write_bytes(b"x" * 8192)
    (tree / "d/link").symlink_to(tmp_path / "large")
    try:
        size, _ = usage._size(tree, 10_000)
    finally:
        remove_tree(tree)
    assert 8192 <= size < 100_000


@pytest.mark.parametrize("kind", ["pipe", "directory", "link"])
def test_what_is_no_file_is_not_read_and_leaves_no_descriptor(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "termination-log"
    files = ContainerFiles(tmp_path, "00000000-0000-0000-0000-000000000000", 0, 0)
    files.termination_log = place
    writer = None
    if kind == "pipe":
        os.mkfifo(place)
        writer = os.open(place, os.O_RDWR)  # somebody who writes nothing
    elif kind == "directory":
        place.mkdir()
    else:
        place.symlink_to("/etc/passwd")
    before = len(os.listdir("/proc/self/fd"))
    assert files.termination_message() == ""
    with opened(beneath.open_trusted(tmp_path)) as parent:
        assert beneath.read_in(parent, place.name, 10) is None
    assert len(os.listdir("/proc/self/fd")) == before
    if writer is not None:
        os.close(writer)
