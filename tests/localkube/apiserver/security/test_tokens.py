import hashlib
import hmac
import stat
from pathlib import Path

import pytest

from localkube.apiserver.request import User
from localkube.apiserver.security.tokens import (
    StaticTokens,
    admin_token,
    new_token,
    token_digest,
)

ALICE = User("alice")


def test_a_token_is_random_and_long() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token().removeprefix("localkube_")) == 43  # 32 bytes


def test_the_administrators_token_stays_while_the_kubeconfig_has_it(tmp_path: Path) -> None:
    token = admin_token(tmp_path, "")
    assert admin_token(tmp_path, token) == token


@pytest.mark.parametrize("current", ["", "wrong"])
def test_a_lost_token_is_replaced_and_no_longer_good(tmp_path: Path, current: str) -> None:
    first = admin_token(tmp_path, "")
    second = admin_token(tmp_path, current)
    assert second not in (first, current)
    assert admin_token(tmp_path, first) not in (first, second)


def test_only_the_digest_is_on_disk_and_private(tmp_path: Path) -> None:
    token = admin_token(tmp_path, "")
    (file,) = tmp_path.iterdir()
    assert file.read_text().strip() == hashlib.sha256(token.encode()).hexdigest()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_token_finds_its_user_and_no_other_does() -> None:
    static = StaticTokens()
    token = static.issue(ALICE)
    assert static.find(token_digest(token)) == ALICE
    assert static.find(token_digest(token + "x")) is None
    assert static.find(token_digest("")) is None


def test_digests_that_begin_alike_are_not_mixed_up() -> None:
    static = StaticTokens()
    digest = token_digest(static.issue(ALICE))
    assert static.find(digest[:8] + bytes(24)) is None


def test_comparison_takes_the_same_time_for_every_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    in_constant_time = hmac.compare_digest

    def compare(a: bytes, b: bytes) -> bool:
        compared.append(len(a))
        return in_constant_time(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    static = StaticTokens()
    static.find(token_digest(static.issue(ALICE)))
    admin_token(tmp_path, admin_token(tmp_path, ""))
    assert compared == [32, 64]


def test_text_that_is_no_unicode_is_just_a_wrong_token() -> None:
    assert StaticTokens().find(token_digest("\udcff")) is None
