"""Quotas: what they allow, and what they say when they do not."""

from hypothesis import given
from hypothesis import strategies as st

from gpupool.local.config.quotas import (
    changes_from_environment,
    exceeded_clusters,
    exceeded_nodes,
    parse_change,
    quota_rows,
    with_changes,
)
from gpupool.local.config.spec import Quotas

numbers = st.integers(0, 6)


def test_the_quotas_of_the_platform() -> None:
    assert dict(quota_rows(Quotas())) == {
        "clusters": 5,
        "nodes-per-cluster": 40,
        "routes-per-cluster": 48,
        "security-groups": 100,
        "load-balancers": 60,
        "eips": 20,
    }


def test_the_last_allowed_one_is_allowed_and_the_next_is_not() -> None:
    assert exceeded_nodes(Quotas(), existing=39, more=1) == ()
    (over,) = exceeded_nodes(Quotas(), existing=39, more=2)
    assert str(over) == (
        "quota nodes-per-cluster is 40: 39 used, 41 wanted. "
        "Raise it with: gpupool quota set nodes-per-cluster=41"
    )
    assert exceeded_clusters(Quotas(), existing=4) == ()
    assert exceeded_clusters(Quotas(), existing=5)[0].quota == "clusters"


def test_each_node_takes_a_route() -> None:
    raised = with_changes(Quotas(), {"nodes-per-cluster": 100})
    assert [over.quota for over in exceeded_nodes(raised, existing=0, more=49)] == [
        "routes-per-cluster"
    ]
    assert [over.quota for over in exceeded_nodes(Quotas(), existing=0, more=49)] == [
        "nodes-per-cluster",
        "routes-per-cluster",
    ]


def test_a_lowered_quota_takes_nothing_away() -> None:
    assert exceeded_nodes(Quotas(nodes_per_cluster=1), existing=3, more=0) == ()


@given(limit=numbers, existing=numbers, more=st.integers(1, 6))
def test_allowed_means_within_the_limit(limit: int, existing: int, more: int) -> None:
    quotas = Quotas(nodes_per_cluster=limit, routes_per_cluster=99)
    assert (exceeded_nodes(quotas, existing=existing, more=more) == ()) == (
        existing + more <= limit
    )


@given(limit=numbers, existing=numbers, more=st.integers(1, 6))
def test_raising_it_as_the_error_says_is_enough(limit: int, existing: int, more: int) -> None:
    quotas = Quotas(nodes_per_cluster=limit, routes_per_cluster=limit)
    over = exceeded_nodes(quotas, existing=existing, more=more)
    raised = with_changes(quotas, {no.quota: no.wanted for no in over})
    assert exceeded_nodes(raised, existing=existing, more=more) == ()


def test_a_change_is_read() -> None:
    assert parse_change("nodes-per-cluster=100") == ("nodes-per-cluster", 100)


def test_a_bad_change_says_what_is_wrong() -> None:
    assert parse_change("nodes-per-cluster") == (
        'wanted NAME=NUMBER, for example nodes-per-cluster=100; found "nodes-per-cluster"'
    )
    assert parse_change("node-per-cluster=1") == (
        'there is no quota "node-per-cluster"; did you mean "nodes-per-cluster"?'
    )
    assert parse_change("clusters=-1") == (
        'clusters: wanted a whole number from 0 to 999999999, found "-1"'
    )


def test_quotas_come_from_the_environment() -> None:
    assert changes_from_environment({"GPUPOOL_QUOTA_NODES_PER_CLUSTER": "7", "HOME": "/"}) == {
        "nodes-per-cluster": 7
    }
    assert changes_from_environment({"GPUPOOL_QUOTA_CLUSTERS": "many"}) == (
        'GPUPOOL_QUOTA_CLUSTERS: clusters: wanted a whole number from 0 to 999999999, found "many"'
    )
