import os
import secrets
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from localkube.data_directory import (
    AlreadyRunning,
    Lock,
    NotPrivate,
    make_data_directory,
    read_private,
    running_pid,
    write_private,
)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_is_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        made = make_data_directory(tmp_path / "data")
    finally:
        os.umask(old)
    assert _mode(made) == 0o700


def test_directories_above_are_made_too(tmp_path: Path) -> None:
    assert make_data_directory(tmp_path / "a" / "b" / "data").is_dir()


def test_a_second_start_finds_the_same_directory(tmp_path: Path) -> None:
    assert make_data_directory(tmp_path / "data") == make_data_directory(tmp_path / "data")


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o710])
def test_a_directory_open_to_others_is_refused_with_the_command_that_mends_it(
    tmp_path: Path, mode: int
) -> None:
    path = tmp_path / "da ta"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(NotPrivate) as refusal:
        make_data_directory(path)
    assert str(refusal.value) == (
        f"{path} is not private: wanted mode 0700, found mode {mode:04o}. "
        f"To mend it: chmod 700 '{path}'"
    )
    path.chmod(0o700)
    make_data_directory(path)


def test_somebody_elses_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_data_directory(tmp_path / "data")
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(NotPrivate, match=f"wanted owner {owner + 1}, found owner {owner}"):
        make_data_directory(path)


def test_a_symbolic_link_in_the_directorys_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "data").symlink_to("elsewhere")
    with pytest.raises(NotPrivate, match="found a symbolic link to"):
        make_data_directory(tmp_path / "data")


def test_a_dangling_link_in_the_directorys_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to("nowhere")
    with pytest.raises(NotPrivate, match="found a symbolic link to"):
        make_data_directory(tmp_path / "data")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_the_directorys_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(NotPrivate, match="wanted a directory"):
        make_data_directory(tmp_path / "data")


def test_a_directory_below_one_that_anybody_may_change_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(NotPrivate, match="chmod o-w"):
        make_data_directory(shared / "data")
    shared.chmod(0o1777)  # sticky, as /tmp is: others may not rename what is ours
    make_data_directory(shared / "data")


def test_what_is_written_is_private_and_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "key"
    old = os.umask(0)
    try:
        write_private(path, b"one")
        write_private(path, b"two")
    finally:
        os.umask(old)
    assert (read_private(path), _mode(path)) == (b"two", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_replaces_a_link_and_leaves_its_target_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "key").symlink_to(victim)
    write_private(tmp_path / "key", b"secret")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "key").is_symlink()


def test_a_link_in_the_place_of_the_new_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda length: "guessed")
    (tmp_path / ".key.guessed").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "key", b"secret")
    assert not (tmp_path / "victim").exists()


def test_a_failed_write_leaves_the_old_content_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key"
    write_private(path, b"old")

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert read_private(tmp_path / "key") is None


def test_a_link_in_a_keys_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    (tmp_path / "key").symlink_to("other")
    with pytest.raises(NotPrivate, match="found a symbolic link"):
        read_private(tmp_path / "key")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("x")
    path.chmod(0o644)
    with pytest.raises(NotPrivate, match=f"found mode 0644. To mend it: chmod 600 {path}"):
        read_private(path)


def test_a_pipe_in_a_keys_place_does_not_hang_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key", 0o600)
    with pytest.raises(NotPrivate, match="wanted a file, found something else"):
        read_private(tmp_path / "key")


def test_a_second_server_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    with Lock(tmp_path), pytest.raises(AlreadyRunning, match=f"in use by process {os.getpid()}"):
        Lock(tmp_path)
    Lock(tmp_path).close()


def test_who_runs_is_known_only_while_it_runs(tmp_path: Path) -> None:
    assert running_pid(tmp_path) is None
    with Lock(tmp_path):
        assert running_pid(tmp_path) == os.getpid()
    assert running_pid(tmp_path) is None


def test_a_killed_server_leaves_no_lock(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, pathlib\n"
        "from localkube.data_directory import Lock\n"
        "held = Lock(pathlib.Path(sys.argv[1]))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert ended.returncode == -9
    assert (tmp_path / "lock").read_text().strip().isdigit()
    assert running_pid(tmp_path) is None
    Lock(tmp_path).close()


def test_a_link_in_the_locks_place_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(OSError, match="lock"):
        Lock(tmp_path)
    assert victim.read_text() == "precious"


def test_a_lock_that_was_handed_over_is_not_ours_to_close(tmp_path: Path) -> None:
    """As when Ctrl-C comes right after: the number may belong to another file by then."""
    lock = Lock(tmp_path, for_child=True)
    childs = os.dup(lock.descriptor)
    lock.hand_over(os.getpid())
    lock.close()
    assert running_pid(tmp_path) == os.getpid()
    os.close(childs)
    assert running_pid(tmp_path) is None
