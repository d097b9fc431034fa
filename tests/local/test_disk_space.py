"""A full disk is told before anything is written."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.local.disk_space import check_space


def has_free(monkeypatch: pytest.MonkeyPatch, mib: int) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=mib << 8, f_frsize=4096))


def test_room_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_free(monkeypatch, 32)
    check_space(tmp_path / "not" / "yet")


def test_a_cluster_is_not_started_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_free(monkeypatch, 3)
    home = tmp_path / "home"
    done = CliRunner().invoke(gpupool, ["up", "--name", "a"], env={"GPUPOOL_HOME": str(home)})
    assert done.exit_code == 1
    assert "wanted 32 MiB of free disk space, found 3 MiB. Free some" in done.output
    assert not home.exists()
