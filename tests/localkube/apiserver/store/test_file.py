"""The store's file: whatever is done to it, it is read as it was written, or refused in words."""

import asyncio
import errno
import os
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localkube.apiserver.store import wal
from localkube.apiserver.store.file import StoreDamaged, read_file
from localkube.apiserver.store.head import HeadWriter, State
from localkube.apiserver.store.store import Store

TRANSACTIONS = 40
_FRAME = 24 + 4096
_LOG_HEAD = 32

Content = dict[str, bytes]


def selectable(resource: str) -> tuple[str, ...]:
    return ("spec.nodeName",) if resource == "pods" else ()


def content(path: Path) -> Content:
    """All that a server would find there. Raises StoreDamaged."""
    store = Store(path, selectable)
    found = {record.name: record.body for record in store.records("pods")}
    store.close()
    return found


def content_or_refusal(path: Path) -> Content | str:
    try:
        return content(path)
    except StoreDamaged as error:
        return str(error)


def pod(number: int, size: int) -> dict[str, Any]:
    name = f"p{number}"
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"text": "x" * size}}


async def work(directory: Path, kept: Path) -> list[Content]:
    """Copies what a kill would leave to `kept`; what was there after each transaction."""
    store = Store(directory / "store.db", selectable)
    store.start()
    states: list[Content] = [{}]
    for number in range(TRANSACTIONS):
        store.create("pods", pod(number, 50 * number))
        if number % 3 == 2:
            old = store.get("pods", "default", f"p{number - 1}")
            assert old is not None
            store.remove(old)
        await store.settled(store.version)
        states.append({r.name: r.body for r in store.records("pods")})
    for name in ("store.db", "store.db-wal"):
        shutil.copy(directory / name, kept / name)
    store.close()
    return states


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Content]]:
    directory, kept = tmp_path_factory.mktemp("running"), tmp_path_factory.mktemp("crashed")
    return kept, asyncio.run(work(directory, kept))


@pytest.fixture(scope="module")
def stopped(
    crashed: tuple[Path, list[Content]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Content]:
    """What a server leaves behind that was stopped: the file, and its head."""
    directory = tmp_path_factory.mktemp("stopped")
    shutil.copytree(crashed[0], directory, dirs_exist_ok=True)
    assert content(directory / "store.db") == crashed[1][-1]
    assert sorted(each.name for each in directory.iterdir()) == ["store.db", "store.db-head"]
    return directory, crashed[1][-1]


def garble(raw: bytearray, draw: random.Random, begin: int = 0) -> None:
    """One bit, a few bytes, or a page."""
    place, size = draw.randrange(begin, len(raw)), draw.choice((1, 1, 16, 4096))
    if size == 1:
        raw[place] ^= 1 << draw.randrange(8)
    else:
        old = raw[place : place + size]
        raw[place : place + size] = draw.choice((bytes(len(old)), draw.randbytes(len(old))))


@pytest.mark.parametrize("seed", range(8))
def test_a_garbled_file_is_refused_or_does_not_matter(
    stopped: tuple[Path, Content], tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    original = (stopped[0] / "store.db").read_bytes()
    refused = 0
    for number in range(25):
        path = tmp_path / f"{number}.db"
        raw = bytearray(original)
        garble(raw, draw)
        path.write_bytes(raw)
        found = content_or_refusal(path)
        if isinstance(found, str):
            refused += 1
            assert str(path) in found
            assert "delete the cluster" in found
            assert path.read_bytes() == bytes(raw), "the evidence must stay as it is"
        else:
            assert found == stopped[1]
    assert refused > 5


@pytest.mark.parametrize("size", [1, 99, 100, 512, 4095, 4096, 5000, 40_000, -4096, -1])
def test_a_file_that_was_cut_short_is_refused(
    stopped: tuple[Path, Content], tmp_path: Path, size: int
) -> None:
    path = tmp_path / "store.db"
    path.write_bytes((stopped[0] / "store.db").read_bytes()[:size])
    with pytest.raises(StoreDamaged, match=r"store\.db.*delete the cluster"):
        content(path)


@pytest.mark.parametrize("seed", range(4))
def test_a_garbled_log_loses_nothing_but_a_last_transaction_that_may_be_torn(
    crashed: tuple[Path, list[Content]], tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    directory, states = crashed
    original = (directory / "store.db-wal").read_bytes()
    refused = 0
    for number in range(15):
        path = tmp_path / f"{number}.db"
        log = tmp_path / f"{number}.db-wal"
        shutil.copy(directory / "store.db", path)
        raw = bytearray(original)
        garble(raw, draw)
        log.write_bytes(raw)
        found = content_or_refusal(path)
        if isinstance(found, str):
            refused += 1
            assert "garbled" in found
            assert log.read_bytes() == bytes(raw), "the evidence must stay as it is"
            assert path.read_bytes() == (directory / "store.db").read_bytes()
        else:
            assert found in states[-2:]
    assert refused > 10


def test_a_log_that_ends_in_mid_write_is_read_up_to_its_last_commit(
    crashed: tuple[Path, list[Content]], tmp_path: Path
) -> None:
    """As after a power cut: what follows had not been flushed, so nobody was told of it."""
    directory, states = crashed
    raw = (directory / "store.db-wal").read_bytes()
    seen = []
    for size in range(0, len(raw), 12_347):
        path = tmp_path / f"{size}.db"
        shutil.copy(directory / "store.db", path)
        path.with_name(f"{size}.db-wal").write_bytes(raw[:size])
        seen.append(states.index(content(path)))
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] > TRANSACTIONS // 2


def test_frames_of_an_older_log_are_no_damage(
    crashed: tuple[Path, list[Content]], tmp_path: Path
) -> None:
    """After a reset the log is written from its beginning, over what was there."""
    directory, _ = crashed
    raw = bytearray((directory / "store.db-wal").read_bytes())
    for start in range(_LOG_HEAD + 3 * _FRAME, len(raw), _FRAME):
        struct.pack_into(">I", raw, start + 8, 12345)  # another salt
    path = tmp_path / "log"
    path.write_bytes(raw)
    assert wal.damage(path) is None


Damage = Callable[[Path], object]
WRONG: dict[str, tuple[Damage, str]] = {
    "an empty file": (lambda path: path.write_bytes(b""), "an empty file.*delete the cluster"),
    "no database": (
        lambda path: path.write_bytes(b"text" * 999),
        "not a database.*delete the cluster",
    ),
    "a directory": (lambda path: path.mkdir(), "Is a directory.*owner and permissions"),
    "a database of others": (
        lambda path: sqlite3.connect(path).execute("CREATE TABLE a(b)").connection.close(),
        "no such table.*delete the cluster",
    ),
    "a log without its file": (
        lambda path: path.with_name("store.db-wal").write_bytes(b"x"),
        "no such file, but store.db-wal",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_store_is_refused_with_what_to_do(tmp_path: Path, what: str) -> None:
    damage, words = WRONG[what]
    path = tmp_path / "store.db"
    damage(path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreDamaged, match=words):
        Store(path, selectable)
    assert sorted(tmp_path.iterdir()) == before


async def written(directory: Path) -> Path:
    """A store of three pods that was killed: nothing is folded, its log has everything."""
    path = directory / "killed" / "store.db"
    path.parent.mkdir(parents=True)
    store = Store(directory / "store.db", selectable)
    store.start()
    for number in range(3):
        await store.durable(store.create("pods", pod(number, 10)))
    for suffix in ("", "-wal", "-head"):
        shutil.copy(directory / f"store.db{suffix}", f"{path}{suffix}")
    store.close()
    return path


def _cut(path: Path) -> None:
    os.truncate(path, os.path.getsize(path) - _FRAME)


LOSSES: dict[str, Callable[[Path], None]] = {
    "no such file, but store.db-wal and store.db-head": lambda path: path.unlink(),
    "and no store.db-wal": lambda path: Path(f"{path}-wal").unlink(),
    "with 2 objects; but version 4 with 3 was acknowledged": lambda path: _cut(Path(f"{path}-wal")),
    "a head (store.db-head) that is garbled": lambda path: os.truncate(f"{path}-head", 7),
}


@pytest.mark.parametrize("words", LOSSES)
async def test_a_store_that_has_lost_acknowledged_writes_is_refused(
    tmp_path: Path, words: str
) -> None:
    path = await written(tmp_path)
    assert len(content(path)) == 3, "it is whole, before something is lost"
    path = await written(tmp_path / "again")
    LOSSES[words](path)
    said = content_or_refusal(path)
    assert isinstance(said, str)
    assert words in said
    assert said == content_or_refusal(path), "nothing was changed"


async def test_without_its_head_a_store_is_taken_as_it_is(tmp_path: Path) -> None:
    """A version before this one wrote none; and it is the way out that the refusal names."""
    path = await written(tmp_path)
    _cut(Path(f"{path}-wal"))
    os.unlink(f"{path}-head")
    assert len(content(path)) == 2
    assert len(content(path)) == 2


async def test_a_head_that_is_behind_is_no_contradiction(tmp_path: Path) -> None:
    """A power cut may lose the last head, and a kill may come before it is written."""
    path = await written(tmp_path)
    HeadWriter(path, State(2, 1)).close()
    assert len(content(path)) == 3


def test_a_killed_first_start_leaves_nothing_that_hinders_the_second(tmp_path: Path) -> None:
    (tmp_path / "store.db.new").write_bytes(b"half made")
    assert content(tmp_path / "store.db") == {}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["store.db", "store.db-head"]


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("end", [_Killed(), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_a_start_that_ends_before_its_head_is_written_is_followed_by_a_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException, call: str
) -> None:
    """The file was complete, and nothing in it was lost."""
    path = tmp_path / "store.db"
    assert list(read_file(path)) == []

    def ends(*_: object) -> None:
        raise end

    with monkeypatch.context() as patched:
        patched.setattr(os, call, ends)
        with pytest.raises(type(end)):
            Store(path, selectable)
    assert content_or_refusal(path) == {}
    assert content_or_refusal(path) == {}


def test_a_new_file_has_its_log_before_it_has_its_name(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    assert list(read_file(path)) == []
    write_version, read_version = path.read_bytes()[18:20]
    assert (write_version, read_version) == (2, 2), "SQLite's numbers for a write-ahead log"


@pytest.mark.parametrize("leftover", ["", "-journal", "-wal", "-shm"])
def test_what_a_killed_first_start_left_is_not_read(tmp_path: Path, leftover: str) -> None:
    (tmp_path / f"store.db.new{leftover}").write_bytes(b"half of something" * 100)
    assert content(tmp_path / "store.db") == {}


def test_a_commit_is_flushed_to_the_disk(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db", selectable)
    db = store._disk._db
    assert db is not None
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    store.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_file_is_refused_with_what_to_do(
    stopped: tuple[Path, Content], tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    shutil.copy(stopped[0] / "store.db", path)
    path.chmod(0o400)
    with pytest.raises(StoreDamaged, match=r"Permission denied.*owner and permissions"):
        Store(path, selectable)


def test_a_log_that_was_found_is_flushed_before_the_head_names_it(
    crashed: tuple[Path, list[Content]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server that wrote it may have been killed before it flushed its last rows."""
    shutil.copytree(crashed[0], tmp_path / "data")
    flushed: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        flushed.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    content(tmp_path / "data" / "store.db")
    assert flushed[:2] == ["store.db-wal", "data"]
    assert "store.db-head" in "".join(flushed[2:])
