"""Reviews against the answers of a real kube-apiserver."""

import json
from copy import deepcopy
from typing import Any

import pytest

from localkube.apiserver.request import User
from localkube.apiserver.security.access import Access
from localkube.apiserver.security.authentication import Authenticator
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.reviews import Question, review
from localkube.apiserver.security.service_account_tokens import ServiceAccountTokens
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.security import security_cases as cases
from tests.localkube.apiserver.security.security_world import (
    answered,
    new_key,
    person,
    recorded_authorizer,
    recorded_objects,
    token_for,
)

NOW_S = 1_000_000.0
OBJECTS = recorded_objects()
ACCOUNTS = ServiceAccountTokens(new_key(), OBJECTS)
AUTHORIZER = recorded_authorizer()
STATIC = StaticTokens()
AUTHENTICATOR = Authenticator(STATIC, ACCOUNTS, AUTHORIZER, lambda: NOW_S)


def _tokens() -> dict[str, str]:
    made = {name: token_for(ACCOUNTS, OBJECTS, spec, NOW_S) for name, spec in cases.TOKENS.items()}
    made["$mangled"] = made["$robot"][:-8] + "AAAAAAAA"
    OBJECTS.found = [each for each in OBJECTS.found if each["metadata"]["name"] != "doomed"]
    return made


TOKENS = _tokens()


def _asked(kind: str, body: Any, user: User, namespace: str = "") -> Any:
    question = Question(body, user, namespace, AUTHORIZER, AUTHENTICATOR, NOW_S)
    return review(kind, question)


def _comparable(answer: Any) -> Any:
    """Without what differs at every run, and with lists that have no order sorted."""
    answer = deepcopy(answer)
    answer["metadata"].pop("creationTimestamp", None)
    status = answer["status"]
    for key in ("resourceRules", "nonResourceRules"):
        if key in status:
            status[key] = sorted(status[key], key=json.dumps)
    extra = status.get("user", {}).get("extra", {})
    if extra:
        extra["authentication.kubernetes.io/credential-id"] = ["JTI"]
    return json.loads(json.dumps(answer, sort_keys=True))


@pytest.mark.parametrize(("case", "recorded"), answered(cases.REVIEWS, "reviews"))
def test_reviews_are_answered_as_kubernetes_does(
    case: tuple[str, str, str, str, Any], recorded: Any
) -> None:
    name, groups, kind, namespace, body = case
    sent = deepcopy(body)
    token = sent.get("spec", {}).get("token", "")
    if token in TOKENS:
        sent["spec"]["token"] = TOKENS[token]
    if recorded["status"] == 201:
        answer = _asked(kind, sent, person(name, groups), namespace)
        if token in TOKENS:
            answer["spec"]["token"] = token
        assert _comparable(answer) == _comparable(recorded["answer"])
        return
    with pytest.raises(ApiError) as refusal:
        _asked(kind, sent, person(name, groups), namespace)
    if "managedFields" in recorded["answer"]["message"]:
        assert refusal.value.status["message"].endswith('{"name":"x"}: must be empty')
    else:
        assert refusal.value.status == recorded["answer"]


def test_the_administrators_token_can_be_reviewed() -> None:
    body = {"spec": {"token": STATIC.issue(ADMIN)}}
    status = _asked("TokenReview", body, ADMIN)["status"]
    assert status["authenticated"]
    assert status["user"]["username"] == "kubernetes-admin"


def test_the_administrators_token_is_for_no_other_audience() -> None:
    body = {"spec": {"token": STATIC.issue(ADMIN), "audiences": ["vault"]}}
    assert "authenticated" not in _asked("TokenReview", body, ADMIN)["status"]


def test_both_kinds_of_attributes_at_once_are_refused() -> None:
    spec = {"resourceAttributes": {}, "nonResourceAttributes": {"verb": "get", "path": "/a"}}
    with pytest.raises(ApiError, match=r'"/a","Verb":"get"}: cannot be specified in'):
        _asked("SelfSubjectAccessReview", {"spec": spec}, ADMIN)


def test_a_path_in_a_review_of_a_namespace_is_refused() -> None:
    spec = {"user": "alice", "nonResourceAttributes": {"verb": "get", "path": "/a"}}
    with pytest.raises(ApiError, match="disallowed on this kind of request"):
        _asked("LocalSubjectAccessReview", {"spec": spec}, ADMIN, "default")


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        ({"rawSelector": "spec.nodeName=n1"}, True),
        ({"rawSelector": "spec.nodeName=n2"}, False),
        ({"rawSelector": "spec.nodeName==="}, False),
        (
            {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]},
            True,
        ),
        (
            {"requirements": [{"key": "spec.nodeName", "operator": "NotIn", "values": ["n1"]}]},
            False,
        ),
        ({"requirements": [{"key": "spec.nodeName", "operator": "Exists"}]}, False),
    ],
)
def test_a_review_counts_the_field_selector(selector: Any, allowed: bool) -> None:
    attributes = {"verb": "list", "resource": "pods", "fieldSelector": selector}
    body = {"spec": {"resourceAttributes": attributes}}
    node = person("system:node:n1", "system:nodes")
    assert _asked("SelfSubjectAccessReview", body, node)["status"]["allowed"] == allowed


def test_an_empty_path_is_no_resource() -> None:
    body = {"spec": {"nonResourceAttributes": {"verb": "get"}}}
    assert not _asked("SelfSubjectAccessReview", body, person("alice"))["status"]["allowed"]
    # For alice may do something to the resource "" of the group "": nothing.
    assert not AUTHORIZER.allowed(person("alice"), Access("get")).allowed
