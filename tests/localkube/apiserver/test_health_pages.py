"""/livez, /healthz and /readyz: kube-apiserver's format, with the programs of the cluster."""

import pytest

from localkube.apiserver.health_pages import answer
from localkube.apiserver.request import Request, User
from localkube.apiserver.security.identities import ADMIN, ANONYMOUS
from localkube.health import Health


@pytest.fixture
def health() -> Health:
    made = Health()
    made.begins("scheduler")
    made.begins("kubelet")
    made.begins("kubelet/usage")
    made.cannot_handle("kubelet", "Pod default/odd", "ValueError: year 0\nis out of range")
    return made


def page(
    health: Health, path: str, query: str = "", user: User | None = ADMIN, not_written: str = ""
) -> tuple[int, str] | None:
    name, _, check = path.partition("/")
    request = Request("GET", f"/{path}", query, user=user)
    found = answer(health, request, name, check, not_written)
    if found is None:
        return None
    assert isinstance(found.body, bytes)
    return found.status, found.body.decode()


def test_all_is_well_in_two_letters(health: Health) -> None:
    for name in ("readyz", "livez", "healthz", "readyz/ping", "livez/etcd", "readyz/scheduler"):
        assert page(health, name) == (200, "ok")
    assert page(health, "readyz/nothing") is None
    assert page(health, "livez/scheduler") is None


def test_administrators_see_the_programs_and_what_they_cannot_handle(health: Health) -> None:
    assert page(health, "readyz", "verbose") == (
        200,
        "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]scheduler ok\n[+]kubelet ok\n"
        "   cannot handle Pod default/odd: ValueError: year 0 is out of range\n"
        "readyz check passed\n",
    )


def test_a_program_that_fails_makes_readiness_fail_and_nothing_else(health: Health) -> None:
    health.fails("scheduler", "OverflowError: too\nlarge")
    health.fails("kubelet/usage", "OSError: no")
    assert page(health, "readyz") == (
        500,
        "[+]ping ok\n[+]log ok\n[+]etcd ok\n[-]scheduler failed: OverflowError: too large\n"
        "[+]kubelet ok\n"
        "   cannot handle Pod default/odd: ValueError: year 0 is out of range\n"
        "[-]kubelet/usage failed: OSError: no\n"
        "readyz check failed\n",
    )
    found = page(health, "readyz/scheduler")
    assert found == (500, "internal server error: OverflowError: too\nlarge\n")
    assert page(health, "readyz/kubelet/usage") == (500, "internal server error: OSError: no\n")
    assert page(health, "livez") == (200, "ok")
    assert page(health, "healthz") == (200, "ok")


@pytest.mark.parametrize("user", [None, ANONYMOUS, User("ann", ("system:authenticated",))])
def test_others_see_which_program_fails_but_not_why(health: Health, user: User | None) -> None:
    health.fails("scheduler", "OverflowError: a secret")
    assert page(health, "readyz", "verbose", user) == (
        500,
        "[+]ping ok\n[+]log ok\n[+]etcd ok\n[-]scheduler failed: reason withheld\n[+]kubelet ok\n"
        "readyz check failed\n",
    )
    assert page(health, "readyz/scheduler", "", user) == (
        500,
        "internal server error: reason withheld\n",
    )


def test_checks_can_be_excluded(health: Health) -> None:
    health.fails("scheduler", "no")
    assert page(health, "readyz", "exclude=scheduler") == (200, "ok")
    status, text = page(health, "readyz", "verbose&exclude=scheduler&exclude=none") or (0, "")
    assert status == 200
    assert "[+]scheduler excluded: ok\n" in text
    warning = 'warn: some health checks cannot be excluded: no matches for "none"\n'
    assert text.endswith(f"{warning}readyz check passed\n")


def test_a_store_that_cannot_be_written_is_not_ready_but_alive(health: Health) -> None:
    full = "database or disk is full"
    assert page(health, "livez", not_written=full) == (200, "ok")
    found = page(health, "readyz", not_written=full)
    assert found is not None
    assert found[0] == 500
    assert "[-]etcd failed: the store cannot be written: database or disk is full\n" in found[1]
