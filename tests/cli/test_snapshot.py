"""`gpupool snapshot` writes to whatever the name stands for."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpupool.cli.snapshot import write_whole


def test_a_file_is_new_and_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text("old")
    file.chmod(0o644)
    write_whole(file, b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    """As in `gpupool snapshot >(gzip > cluster.json.gz)`; and for root /dev/null stays a device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as threads:
        read = threads.submit(pipe.read_bytes)
        write_whole(pipe, b"all of it")
        assert read.result(60) == b"all of it"
    assert pipe.is_fifo()


@pytest.mark.parametrize("target", ["old.json", "missing.json"])
def test_a_link_stays_a_link(target: str, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / target).read_bytes() == b"new"


def test_links_in_a_circle_are_no_traceback(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(link)
    write_whole(link, b"new")
    assert link.read_bytes() == b"new"


def test_a_missing_directory_is_named_as_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "cluster.json"
    with pytest.raises(FileNotFoundError) as found:
        write_whole(file, b"new")
    assert found.value.filename == str(file)
