import pytest

from gpupool.contract.pods import pod_request
from gpupool.contract.quotas import quota_of
from kubeclient.objects import Obj

METADATA = {"name": "q", "namespace": "default", "uid": "1"}
PLAIN: Obj = {"containers": [{"name": "c"}]}
DEMANDING: Obj = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


def quota(**spec: object) -> Obj:
    return {"metadata": METADATA, "spec": {"hard": {"requests.aliyun.com/gpu-mem": "10"}, **spec}}


def test_hard_and_used_are_read() -> None:
    made = quota() | {"status": {"used": {"requests.aliyun.com/gpu-mem": "4"}}}
    found = quota_of(made)
    assert found is not None
    assert (found.hard, found.used) == (10, 4)


def test_a_quota_of_other_resources_is_ignored() -> None:
    assert quota_of({"metadata": METADATA, "spec": {"hard": {"pods": "3"}}}) is None


def priority(operator: str, *values: str) -> Obj:
    scope = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [scope]}}


@pytest.mark.parametrize(
    ("scopes", "spec", "covers"),
    [
        ({}, PLAIN, True),
        ({"scopes": ["NotTerminating"]}, PLAIN, True),
        ({"scopes": ["Terminating"]}, PLAIN, False),
        ({"scopes": ["Terminating"]}, PLAIN | {"activeDeadlineSeconds": 5}, True),
        ({"scopes": ["BestEffort"]}, PLAIN, True),
        ({"scopes": ["NotBestEffort"]}, PLAIN, False),
        ({"scopes": ["NotBestEffort", "NotTerminating"]}, DEMANDING, True),
        (priority("In", "low"), PLAIN | {"priorityClassName": "low"}, True),
        (priority("In", "low"), PLAIN, False),
        (priority("NotIn", "low"), PLAIN | {"priorityClassName": "low"}, False),
        (priority("Exists"), PLAIN | {"priorityClassName": "low"}, True),
        (priority("DoesNotExist"), PLAIN, True),
        ({"scopes": ["Unheard-of"]}, PLAIN, True),
    ],
)
def test_a_quota_counts_pods_that_match_its_scopes(scopes: Obj, spec: Obj, covers: bool) -> None:
    found = quota_of(quota(**scopes))
    assert found is not None
    assert found.covers(pod_request({"metadata": METADATA, "spec": spec})) is covers
