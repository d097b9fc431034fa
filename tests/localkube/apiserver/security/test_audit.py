import os
import stat
from pathlib import Path

import msgspec
import pytest

from localkube.apiserver.security import audit
from localkube.apiserver.security.access import Access
from localkube.apiserver.security.audit import AuditLog, Done

BIND = Access("create", "apps", "deployments", "scale", "default", "web")
DONE = Done(at_s=1_700_000_000.1234, user="alice", access=BIND, code=201, ms=1.2345)


def _lines(path: Path) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


def test_a_line_says_who_did_what_to_which_object_and_how_it_ended(path: Path) -> None:
    log = AuditLog(path)
    log.record(DONE)
    log.close()
    assert _lines(path) == [
        {
            "time": "2023-11-14T22:13:20.123+00:00",
            "user": "alice",
            "verb": "create",
            "resource": "deployments.apps/scale",
            "namespace": "default",
            "name": "web",
            "code": 201,
            "ms": 1.23,
        }
    ]


def test_an_impersonator_is_named(path: Path) -> None:
    log = AuditLog(path)
    log.record(msgspec.structs.replace(DONE, requester="root"))
    log.close()
    assert _lines(path)[0]["requester"] == "root"


def test_queries_are_shown_without_secrets(path: Path) -> None:
    log = AuditLog(path)
    query = "command=mysql&command=-pSECRET&container=db&dryRun=All"
    log.record(msgspec.structs.replace(DONE, query=query))
    log.close()
    text = path.read_text()
    assert "SECRET" not in text
    assert "mysql" not in text
    assert "dryRun=All" in text


def test_names_cannot_forge_lines(path: Path) -> None:
    log = AuditLog(path)
    forged = msgspec.structs.replace(BIND, name='x","code":200}\n{"user":"root')
    log.record(msgspec.structs.replace(DONE, access=forged))
    log.close()
    assert len(_lines(path)) == 1


def test_lines_are_gathered_until_flushed(path: Path) -> None:
    log = AuditLog(path)
    log.record(DONE)
    assert path.read_bytes() == b""
    log.flush()
    log.flush()
    assert len(_lines(path)) == 1
    log.close()


def test_many_lines_are_written_without_being_asked(path: Path) -> None:
    log = AuditLog(path)
    for _ in range(1000):
        log.record(DONE)
    assert len(_lines(path)) > 100
    log.close()


def test_a_later_start_goes_on_in_the_same_file(path: Path) -> None:
    for _ in range(2):
        log = AuditLog(path)
        log.record(DONE)
        log.close()
    assert len(_lines(path)) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_is_private_whatever_the_umask(path: Path) -> None:
    old = os.umask(0)
    try:
        AuditLog(path).close()
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_three_files_are_kept_at_most(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_MAX_BYTES", 300)
    log = AuditLog(path)
    for number in range(10):
        log.record(msgspec.structs.replace(DONE, code=number))
        log.flush()
    log.close()
    files = sorted(path.parent.iterdir())
    assert [each.name for each in files] == ["audit.log", "audit.log.1", "audit.log.2"]
    assert all(each.stat().st_size <= 300 for each in files)
    kept = [line["code"] for each in reversed(files) for line in _lines(each)]
    assert kept == list(range(10))[-len(kept) :]
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


def test_a_full_disk_stops_the_log_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(path)

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        log.record(DONE)
        log.flush()
    assert log.lost == 1
    log.record(DONE)
    log.close()
    assert len(_lines(path)) == 1


def test_a_link_in_the_logs_place_is_not_followed(path: Path) -> None:
    victim = path.with_name("victim")
    victim.touch()
    path.symlink_to(victim)
    with pytest.raises(OSError, match=r"audit\.log"):
        AuditLog(path)
