"""Our authorizer against the answers of a real kube-apiserver."""

from typing import Any

import pytest

from localkube.apiserver.security.access import Access, forbidden, scoped
from localkube.apiserver.security.bootstrap_roles import bootstrap_objects
from localkube.apiserver.security.escalation import escalation_refusal
from localkube.apiserver.security.rbac import GROUP
from tests.localkube.apiserver.security import security_cases as cases
from tests.localkube.apiserver.security.security_world import (
    RECORDED,
    answered,
    person,
    recorded_authorizer,
)

AUTHORIZER = recorded_authorizer()


@pytest.mark.parametrize(("case", "recorded"), answered(cases.REQUESTS, "requests"))
def test_requests_are_judged_as_kubernetes_does(case: tuple[str, ...], recorded: Any) -> None:
    user, access = person(case[0], case[1]), scoped(Access(**cases.access(case)))
    verdict = AUTHORIZER.allowed(user, access)
    assert verdict.allowed == (recorded["status"] != 403)
    if not verdict.allowed:
        assert forbidden(user, access, verdict.reason).status == recorded["answer"]


@pytest.mark.parametrize(("case", "recorded"), answered(cases.GRANTS, "grants"))
def test_grants_are_judged_as_kubernetes_does(case: tuple[str, Any], recorded: Any) -> None:
    name, body = case
    metadata = body["metadata"]
    access = Access(
        "create", GROUP, body["kind"].lower() + "s", namespace=metadata.get("namespace", "")
    )
    refusal = escalation_refusal(AUTHORIZER, person(name), access, body, None)
    assert (refusal and refusal.status) == recorded["answer"]


@pytest.mark.parametrize("plural", sorted(RECORDED["bootstrap"]))
def test_the_bootstrap_objects_are_those_of_kubernetes(plural: str) -> None:
    ours = {
        each["metadata"]["name"]: {k: v for k, v in each.items() if k not in ("kind", "apiVersion")}
        for each in bootstrap_objects()
        if each["kind"].lower() + "s" == plural and "localkube" not in each["metadata"]["name"]
    }
    assert ours == {each["metadata"]["name"]: each for each in RECORDED["bootstrap"][plural]}
