"""Pods of Jobs: to a Job, a pod that is evicted is one that failed."""

from pathlib import Path
from typing import Any

import pytest

from gpupool.cli.defrag import _Asked, _proposal
from gpupool.cli.defrag_retries import budgets_of, has_retries
from gpupool.cli.defrag_view import Proposal, page_of
from gpupool.contract.manifests import pod_templates
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import JOBS, NODES, PODS
from tests.cli.test_defrag_steps import carry, made, shorten_waits
from tests.cli.test_scenario import named_node, running
from tests.scheduler.test_what_if import pod

LABEL = "batch.kubernetes.io/controller-uid"
EVICTED = {"type": "DisruptionTarget", "status": "True"}


def job(spec: Obj, failed: int = 0) -> Obj:
    return {
        "metadata": {"name": "train", "namespace": "team", "uid": "j"},
        "spec": {"selector": {"matchLabels": {LABEL: "j"}}, **spec},
        "status": {"failed": failed, "uncountedTerminatedPods": {}},
    }


def rule(action: str, **of: Any) -> Obj:
    return {"podFailurePolicy": {"rules": [{"action": action, **of}]}, "backoffLimit": 0}


def first_by_code(action: str, operator: str, *codes: int) -> Obj:
    """Before a rule by which evictions do not count: an evicted program is told to end, or killed,
    and its pod may meet the first rule instead."""
    exits = {"operator": operator, "values": list(codes)}
    rules = [
        {"action": action, "onExitCodes": exits},
        {"action": "Ignore", "onPodConditions": [EVICTED]},
    ]
    return {"podFailurePolicy": {"rules": rules}, "backoffLimit": 6}


def member(name: str, node: str, cards: int = 1) -> Obj:
    found = running(name, cards, node)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j"}
    found["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    found["metadata"]["labels"] = {LABEL: "j"}
    return found


def proposal(pods: list[Obj], spec: Obj, failed: int = 0) -> Proposal:
    """For a pod that needs all cards of one of two nodes."""
    objects = {
        NODES: [named_node("a", 4), named_node("b", 4)],
        PODS: pods,
        JOBS: [job(spec, failed)],
    }
    template = {"kind": "Pod", "metadata": {"name": "w"}, "spec": pod("w", 4)["spec"]}
    asked = _Asked(Path("w.yaml"), "team", 10, False, "best-fit")
    return _proposal(objects, pod_templates([template], "team"), [pod("w", 4)], asked)


ONE_EACH = [member("on-a", "a"), member("on-b", "b")]
TWO_EACH = [member(f"{n}-on-{node}", node) for node in "ab" for n in "xy"]


def first_line(found: Proposal) -> str:
    return page_of(found).text[0].text


@pytest.mark.parametrize(("limit", "failed"), [(0, 0), (6, 6), (6, 9), (None, 6)])
def test_pods_of_a_job_without_retries_stay(limit: int | None, failed: int) -> None:
    """It would fail, and end its other pods."""
    found = proposal(ONE_EACH, {"backoffLimit": limit}, failed)
    assert found.plan is None
    assert "pod team/on-a of node a has the Job train, which has no retries left." in first_line(
        found
    )


@pytest.mark.parametrize(("limit", "failed"), [(1, 0), (6, 5), (None, 0), (None, 5)])
def test_pods_of_a_job_with_retries_move(limit: int | None, failed: int) -> None:
    assert proposal(ONE_EACH, {"backoffLimit": limit}, failed).plan is not None


def test_no_more_pods_of_a_job_move_than_it_has_retries() -> None:
    assert proposal(TWO_EACH, {"backoffLimit": 2}).plan is not None
    found = proposal(TWO_EACH, {"backoffLimit": 1})
    assert found.plan is None
    assert "In the way: the Job team/train has 1 of 2 retries left." in first_line(found)


def test_jobs_that_could_not_run_out_of_retries_are_not_compared_with_each_move() -> None:
    """A cluster may have thousands of them, most of which have ended."""
    jobs = [
        {**job({"backoffLimit": 2}), "metadata": {"name": name, "namespace": "team", "uid": name}}
        for name in ("enough", "ended", "short")
    ]
    pods = [member(f"p{at}", "a") for at in range(5)]
    for at, owner in enumerate(("enough", "enough", "short", "short", "short")):
        pods[at]["metadata"]["ownerReferences"][0]["uid"] = owner
    assert set(budgets_of(jobs, pods)) == {("team", "short")}


@pytest.mark.parametrize(
    ("spec", "may"),
    [
        (rule("Ignore", onPodConditions=[EVICTED]), True),
        (rule("Ignore", onPodConditions=[{"type": "DisruptionTarget"}]), True),
        (rule("Ignore", onPodConditions=[{**EVICTED, "status": "False"}]), False),
        (rule("Ignore", onExitCodes={"operator": "In", "values": [1]}), False),
        (first_by_code("FailJob", "NotIn", 0, 42), False),
        (first_by_code("FailJob", "In", 143), False),
        (first_by_code("FailJob", "In", 42), True),
        (first_by_code("FailJob", "NotIn", 0, 137, 143), True),
        (first_by_code("Ignore", "In", 143), True),
        ({**rule("FailJob", onPodConditions=[EVICTED]), "backoffLimit": 6}, False),
        ({**rule("Count", onPodConditions=[EVICTED]), "backoffLimit": 6}, True),
    ],
)
def test_what_a_job_says_of_evictions_counts(spec: Obj, *, may: bool) -> None:
    assert has_retries(job(spec), ONE_EACH[0]) == may


@pytest.mark.parametrize(
    ("failures", "may"), [("0", True), ("1", True), ("2", False), ("x", False)]
)
def test_an_index_has_retries_of_its_own(failures: str, *, may: bool) -> None:
    one = member("on-a", "a")
    one["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = failures
    many = {"backoffLimit": 2**31 - 1, "backoffLimitPerIndex": 2}
    assert has_retries(job(many, failed=5), one) == may


def test_pods_that_failed_and_are_not_counted_yet_count() -> None:
    late = job({"backoffLimit": 1})
    late["status"] = {"uncountedTerminatedPods": {"failed": ["uid"]}}
    assert not has_retries(late, ONE_EACH[0])


@pytest.mark.parametrize("version", ["batch/v1", "batch.volcano.sh/v1alpha1"])
async def test_a_job_that_has_used_up_its_retries_meanwhile_keeps_its_pod(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_waits(monkeypatch)
    api, plan = made()
    (owner,) = api.pods["p0"]["metadata"]["ownerReferences"]
    owner |= {"apiVersion": version, "kind": "Job", "name": "train"}
    get = Kube.get

    async def with_jobs(self: Kube, resource: Any, *where: Any) -> Obj:
        return job({}, failed=6) if resource is JOBS else await get(self, resource, *where)

    monkeypatch.setattr(Kube, "get", with_jobs)
    done = await carry(api, plan)
    if version == "batch/v1":
        assert not api.evicted
        assert "pod team/p0 has the Job train, which has no retries left. Plan anew." in done.words
    else:
        assert done.is_complete
