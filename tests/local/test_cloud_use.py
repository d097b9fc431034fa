"""Quotas that all clusters share: what each takes, also while stopped, and what is refused."""

import asyncio
from pathlib import Path

import pytest

from gpupool.local.cloud_use import ServiceQuota, used
from gpupool.local.cluster_setup import Wish, set_up_directory
from gpupool.local.config.spec import Quotas
from gpupool.local.home import CannotUse, Home


def quota_of(home: Home, name: str, limit: int) -> ServiceQuota:
    place = home.find(name) or home.make(name, None)
    return ServiceQuota(home, place.path, lambda: Quotas(load_balancers=limit))


def test_each_cluster_takes_what_the_document_says(home: Home) -> None:
    assert used(home) == {"security-groups": 0, "load-balancers": 0, "eips": 0}
    for name in ("a", "b"):
        home.make(name, None)
    assert used(home) == {"security-groups": 2, "load-balancers": 4, "eips": 2}


async def test_services_of_all_clusters_share_the_quota(home: Home) -> None:
    a, b = (quota_of(home, name, 7) for name in ("a", "b"))
    assert await a.more(1) == ""
    assert await a.more(2) == ""
    assert await b.more(1) == ""
    assert used(home)["load-balancers"] == 7
    assert await b.more(2) == (
        "quota load-balancers is 7: 7 used, 8 wanted. "
        "Raise it with: gpupool quota set load-balancers=8"
    )
    await a.fewer(1)
    assert await b.more(2) == ""


async def test_what_a_cluster_has_it_keeps_when_the_quota_is_lowered(home: Home) -> None:
    assert await quota_of(home, "a", 60).more(3) == ""
    lowered = quota_of(home, "a", 1)
    assert await lowered.more(3) == ""
    assert "5 used, 6 wanted" in await lowered.more(4)


async def test_two_clusters_at_once_do_not_both_get_the_last_one(home: Home) -> None:
    a, b = (quota_of(home, name, 5) for name in ("a", "b"))
    answers = await asyncio.gather(a.more(1), b.more(1))
    assert sorted(map(bool, answers)) == [False, True]


@pytest.mark.parametrize("text", [b"", b"x", b"-1", b"9" * 5000, b"\xff"])
async def test_a_damaged_number_counts_as_none(home: Home, text: bytes) -> None:
    place = home.make("a", None)
    (place.path / "load-balancers").write_bytes(text)
    assert used(home)["load-balancers"] == 2


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("SECURITY_GROUPS", "quota security-groups is 1: 1 used, 2 wanted."),
        ("LOAD_BALANCERS", "quota load-balancers is 1: 2 used, 4 wanted."),
        ("EIPS", "quota eips is 1: 1 used, 2 wanted."),
    ],
)
def test_a_cluster_beyond_a_quota_is_not_made(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, words: str
) -> None:
    small = tmp_path / "small.yaml"
    small.write_text("apiVersion: gpupool.io/v1alpha1\nkind: Cluster\npools: []\n")
    set_up_directory(home, Wish(name="a", port=0, config=small))
    monkeypatch.setenv(f"GPUPOOL_QUOTA_{variable}", "1")
    with pytest.raises(CannotUse) as refusal:
        set_up_directory(home, Wish(name="b", port=0, config=small))
    assert words in refusal.value.message
    assert home.find("b") is None
    set_up_directory(home, Wish(name="a", port=0))  # one that is there may start again
