"""What the test-bed does before it starts anything. Runs with all other tests, as any user."""

import os
from pathlib import Path

import pytest

from testbed import build, cluster
from testbed.controlplane import ControlPlane
from testbed.node import Node, _script


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / name
    made.touch(mode=0o755)
    return made


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty; and no Go to fill it."""
    monkeypatch.setenv("GPUPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return build.binary_dir()


def test_ready_programs_come_before_those_of_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = {name: program(cache, name) for name in ("etcd", "kubelet")}
    assert build.ensure("etcd") == cached["etcd"]
    ready = program(tmp_path / "assets", "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert build.ensure("etcd") == ready
    assert build.ensure("kubelet") == cached["kubelet"]


def test_a_missing_program_is_named_with_what_would_help(cache: Path) -> None:
    with pytest.raises(build.BuildError, match="KUBEBUILDER_ASSETS=/folder to use ready programs"):
        build.ensure("etcd")


def test_a_node_finds_programs_in_several_folders(tmp_path: Path) -> None:
    programs = {"kubelet": tmp_path / "a" / "kubelet", "containerd": tmp_path / "b" / "containerd"}
    script = _script(Node("127.0.0.2", tmp_path / "node"), programs, tmp_path / "images.tar")
    assert f"export PATH={tmp_path / 'a'}:{tmp_path / 'b'}:$PATH" in script


def test_a_machine_that_cannot_says_why(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.main(["--check"]) == cluster.CANNOT
    assert "a real kubelet: wanted" in capsys.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cluster.main(["--check"]) == cluster.CANNOT
    assert "wanted Linux and root" in capsys.readouterr().err


def test_a_second_testbed_on_the_machine_says_who_has_the_first() -> None:
    name = f"\0gpupool-test-{os.getpid()}"
    words = rf"another test-bed .*process {os.getpid()}"
    with cluster.hold_addresses(name), pytest.raises(cluster.CannotRun, match=words):
        cluster.hold_addresses(name)
    cluster.hold_addresses(name).close()


def test_what_was_never_started_deletes_nothing_when_it_is_stopped(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (here / "work").touch()
    plane = ControlPlane()
    with pytest.raises(build.BuildError):
        plane.__enter__()
    plane.stop()
    cluster.Kubernetes().stop()
    assert (here / "work").exists()
