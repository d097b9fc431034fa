from typing import Any

import pytest

from localkube.apiserver.request import User
from localkube.apiserver.security.access import Access
from localkube.apiserver.security.escalation import escalation_refusal
from localkube.apiserver.security.rbac import GROUP
from tests.localkube.apiserver.security.security_cases import (
    aggregation,
    binding,
    role,
    rule,
)
from tests.localkube.apiserver.security.security_world import person, recorded_authorizer

AUTHORIZER = recorded_authorizer()
GINA = person("gina")  # may write roles in default, and reads pods there
POWER = role("Role", "r", rule("delete", "", "secrets"))
UPDATE = Access("update", GROUP, "roles", namespace="default", name="r")


def _code(user: User, access: Access, new: Any, old: Any = None) -> int | None:
    refusal = escalation_refusal(AUTHORIZER, user, access, new, old)
    return None if refusal is None else refusal.code


def test_a_change_that_grants_too_much_is_refused() -> None:
    assert _code(GINA, UPDATE, POWER, role("Role", "r")) == 403


@pytest.mark.parametrize(
    "metadata", [{"finalizers": ["x"]}, {"ownerReferences": []}, {"resourceVersion": "2"}]
)
def test_a_change_for_the_garbage_collector_is_no_grant(metadata: Any) -> None:
    new = POWER | {"metadata": POWER["metadata"] | metadata}
    assert _code(GINA, UPDATE, new, POWER) is None


def test_a_change_of_labels_is_judged_with_the_whole_role() -> None:
    new = POWER | {"metadata": POWER["metadata"] | {"labels": {"a": "b"}}}
    assert _code(GINA, UPDATE, new, POWER) == 403


def test_masters_may_grant_anything() -> None:
    assert _code(User("root", ("system:masters",)), UPDATE, POWER) is None


def test_other_objects_are_none_of_this() -> None:
    secret = {"metadata": {"name": "s"}}
    assert _code(GINA, Access("create", "", "secrets", namespace="default"), secret) is None


def test_whoever_aggregated_before_may_not_stop_it_without_full_rights() -> None:
    old = role("ClusterRole", "r", aggregationRule=aggregation(a="b"))
    access = Access("update", GROUP, "clusterroles", name="r")
    assert _code(person("wes"), access, role("ClusterRole", "r"), old) == 403


def test_a_binding_of_an_unknown_kind_of_role_is_refused() -> None:
    new = binding("RoleBinding", "b", "Chief r", "User alice")
    access = Access("create", GROUP, "rolebindings", namespace="default")
    assert _code(GINA, access, new) == 404


def test_rights_from_elsewhere_do_not_count() -> None:
    access = Access("create", GROUP, "roles", namespace="other")
    new = role("Role", "r", rule("get", "", "pods"))
    assert _code(GINA, access, new) == 403
