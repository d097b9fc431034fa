"""RBAC without a recording: tables of rules, changes, and a naive reading of the documentation."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.request import User
from localkube.apiserver.security import rbac
from localkube.apiserver.security.access import Access, Verdict, scoped
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.security.rules import described, parse_rules, uncovered
from tests.localkube.apiserver.security.security_cases import (
    aggregation,
    binding,
    role,
    rule,
)
from tests.localkube.apiserver.security.security_world import Objects, person, store

Json = Any
ALICE = person("alice")


def _authorizer(*objects: Json) -> Authorizer:
    authorizer = Authorizer(Objects([]))
    for body in objects:
        store(authorizer, body)
    return authorizer


def _with_rule(made: Json) -> Authorizer:
    return _authorizer(
        role("ClusterRole", "r", made),
        binding("ClusterRoleBinding", "b", "ClusterRole r", "User alice"),
    )


@pytest.mark.parametrize(
    ("made", "access", "allowed"),
    [
        (rule("get", "", "pods"), Access("get", "", "pods"), True),
        (rule("get", "", "pods"), Access("get", "apps", "pods"), False),
        (rule("get", "*", "pods"), Access("get", "apps", "pods"), True),
        (rule("*", "", "pods"), Access("anything", "", "pods"), True),
        (rule("get", "", "*"), Access("get", "", "pods"), True),
        (rule("get", "", "*"), Access("get", "", "pods", "log"), True),
        (rule("get", "", "pods"), Access("get", "", "pods", "log"), False),
        (rule("get", "", "pods/log"), Access("get", "", "pods", "log"), True),
        (rule("get", "", "pods/log"), Access("get", "", "pods"), False),
        (rule("get", "", "*/log"), Access("get", "", "pods", "log"), True),
        (rule("get", "", "*/log"), Access("get", "", "pods", "blog"), False),
        (rule("get", "", "*/log"), Access("get", "", "pods"), False),
        (rule("get", "", "*/"), Access("get", "", "pods"), False),
        (rule("get", "", "pods/*"), Access("get", "", "pods", "log"), False),
        (rule("get", "", "pods", "a"), Access("get", "", "pods", name="a"), True),
        (rule("get", "", "pods", "a"), Access("get", "", "pods", name="b"), False),
        (rule("get", "", "pods", "a"), Access("get", "", "pods"), False),
        (rule("get", "", "pods", "*"), Access("get", "", "pods", name="b"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/a"]}, Access("get", path="/a"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/a"]}, Access("get", path="/a/"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/a/*"]}, Access("get", path="/a/b/c"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/a/*"]}, Access("get", path="/a"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/a*"]}, Access("get", path="/ab"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["*"]}, Access("get", path="/"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/*/b"]}, Access("get", path="/a/b"), False),
        (rule("get", "", "*"), Access("get", path="/a"), False),
        ({"verbs": ["*"], "nonResourceURLs": ["*"]}, Access("get", "", "pods"), False),
        ({"verbs": None, "apiGroups": None, "resources": None}, Access("get", "", "pods"), False),
        ({}, Access("get"), False),
    ],
)
def test_a_rule_allows_what_it_says(made: Json, access: Access, allowed: bool) -> None:
    assert _with_rule(made).allowed(ALICE, access).allowed is allowed


@pytest.mark.parametrize(
    ("subject", "user", "allowed"),
    [
        ("User alice", ALICE, True),
        ("User bob", ALICE, False),
        ("Group devs", person("bob", "devs"), True),
        ("Group alice", ALICE, False),
        ("User devs", person("bob", "devs"), False),
        ("Group system:authenticated", ALICE, True),
        ("ServiceAccount robot default", person("system:serviceaccount:default:robot"), True),
        ("ServiceAccount robot other", person("system:serviceaccount:default:robot"), False),
        ("ServiceAccount robot default", person("robot"), False),
        ("Group system:serviceaccounts:a", person("system:serviceaccount:a:x"), True),
        ("Group system:serviceaccounts:a", person("system:serviceaccount:b:x"), False),
        ("Robot alice", ALICE, False),
    ],
)
def test_a_binding_is_for_its_subjects(subject: str, user: User, allowed: bool) -> None:
    authorizer = _authorizer(
        role("ClusterRole", "r", rule("get", "", "pods")),
        binding("ClusterRoleBinding", "b", "ClusterRole r", subject),
    )
    assert authorizer.allowed(user, Access("get", "", "pods")).allowed is allowed


def test_a_service_account_without_a_namespace_is_that_of_the_role_binding() -> None:
    authorizer = _authorizer(
        role("ClusterRole", "r", rule("get", "", "pods")),
        binding("RoleBinding", "b", "ClusterRole r", "ServiceAccount robot"),
        binding("ClusterRoleBinding", "b", "ClusterRole r", "ServiceAccount ghost"),
    )
    access = Access("get", "", "pods", namespace="default")
    assert authorizer.allowed(person("system:serviceaccount:default:robot"), access).allowed
    assert not authorizer.allowed(person("system:serviceaccount:default:ghost"), access).allowed


def test_a_role_binding_counts_in_its_namespace_only() -> None:
    authorizer = _authorizer(
        role("ClusterRole", "r", rule("get", "", "pods")),
        binding("RoleBinding", "b", "ClusterRole r", "User alice"),
    )
    for namespace, allowed in (("default", True), ("other", False), ("", False)):
        access = Access("get", "", "pods", namespace=namespace)
        assert authorizer.allowed(ALICE, access).allowed is allowed


def test_a_cluster_role_binding_cannot_refer_to_a_role() -> None:
    authorizer = _authorizer(
        role("Role", "r", rule("get", "", "pods")),
        binding("ClusterRoleBinding", "b", "Role r", "User alice"),
    )
    verdict = authorizer.allowed(ALICE, Access("get", "", "pods", namespace="default"))
    assert not verdict.allowed
    assert verdict.reason == 'RBAC: role.rbac.authorization.k8s.io "r" not found'


def test_members_of_masters_may_everything() -> None:
    root = User("anybody", ("system:masters",))
    for access in (Access("delete", "", "nodes", name="n"), Access("get", path="/anything")):
        assert _authorizer().allowed(root, access).allowed


def test_a_user_called_masters_is_nobody_special() -> None:
    assert not _authorizer().allowed(User("system:masters"), Access("get", "", "pods")).allowed


def test_changes_count_at_once() -> None:
    authorizer = _authorizer()
    access = Access("get", "", "pods", namespace="default")
    reader = role("Role", "r", rule("get", "", "pods"))
    bound = binding("RoleBinding", "b", "Role r", "User alice")
    steps: list[tuple[str, str, Json | None, bool]] = [
        ("roles", "r", reader, False),
        ("rolebindings", "b", bound, True),
        ("rolebindings", "b", binding("RoleBinding", "b", "Role r", "User bob"), False),
        ("rolebindings", "b", bound, True),
        ("roles", "r", role("Role", "r", rule("list", "", "pods")), False),
        ("roles", "r", reader, True),
        ("roles", "r", None, False),
        ("roles", "r", reader, True),
        ("rolebindings", "b", None, False),
        ("rolebindings", "b", None, False),
        ("configmaps", "b", bound, False),
    ]
    for plural, name, body, allowed in steps:
        authorizer.replace(plural, "default", name, body)
        assert authorizer.allowed(ALICE, access).allowed is allowed


def test_nothing_is_left_of_bindings_that_are_gone() -> None:
    authorizer = _authorizer()
    for number in range(3):
        body = binding("RoleBinding", "b", "Role r", f"User u{number}", "User u")
        authorizer.replace("rolebindings", "default", "b", body)
    authorizer.replace("rolebindings", "default", "b", None)
    assert not authorizer._of_subject
    assert not authorizer._bindings


def test_memories_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac, "_MAX_GRANTS", 3)
    monkeypatch.setattr(rbac, "_MAX_VERDICTS", 3)
    authorizer = _with_rule(rule("get", "", "pods"))
    for number in range(10):
        assert authorizer.allowed(ALICE, Access("get", "", "pods")).allowed
        authorizer.allowed(ALICE, Access("get", "", f"made-up-{number}"))
        authorizer.allowed(ALICE, Access("get", path=f"/made-up-{number}"))
        authorizer.allowed(person(f"made-up-{number}"), Access("get", "", "pods"))
        grants = authorizer.grants(ALICE, "")
        assert max(len(authorizer._grants), len(grants._by_resource), len(grants._by_path)) <= 3


def test_aggregated_roles_gather_through_others_and_in_circles() -> None:
    authorizer = _authorizer(
        role("ClusterRole", "a", aggregationRule=aggregation(to="a"), labels={"to": "b"}),
        role(
            "ClusterRole",
            "b",
            rule("*", "*", "*"),  # written by hand: does not count
            aggregationRule=aggregation(to="b"),
            labels={"to": "a"},
        ),
        role("ClusterRole", "pods", rule("get", "", "pods"), labels={"to": "a"}),
        role("ClusterRole", "nodes", rule("get", "", "nodes"), labels={"to": "b"}),
        role("ClusterRole", "secrets", rule("get", "", "secrets"), labels={"to": "c"}),
        binding("ClusterRoleBinding", "b", "ClusterRole a", "User alice"),
    )
    allowed = [
        resource
        for resource in ("pods", "nodes", "secrets", "services")
        if authorizer.allowed(ALICE, Access("get", "", resource)).allowed
    ]
    assert allowed == ["pods", "nodes"]


def test_aggregates_are_stale_until_their_rules_are_stored() -> None:
    sum_ = role("ClusterRole", "sum", aggregationRule=aggregation(to="sum"))
    authorizer = _authorizer(
        sum_, role("ClusterRole", "one", rule("get", "", "pods", "x"), labels={"to": "sum"})
    )
    stale = dict(authorizer.stale_aggregates())
    assert stale == {"sum": [rule("get", "", "pods", "x")]}
    store(authorizer, sum_ | {"rules": stale["sum"]})
    assert not dict(authorizer.stale_aggregates())


def test_an_unreadable_selector_gathers_nothing() -> None:
    bad = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}
    authorizer = _authorizer(
        role("ClusterRole", "sum", aggregationRule=bad),
        role("ClusterRole", "one", rule("get", "", "pods")),
    )
    assert authorizer.role_rules("ClusterRole", "sum", "") == ()


def test_a_namespace_is_in_itself_and_a_selector_may_name_the_object() -> None:
    assert scoped(Access("get", "", "namespaces", name="n")).namespace == "n"
    listed = Access("list", "", "pods", namespace="n", field_selector="metadata.name=p,a=b")
    assert scoped(listed).name == "p"
    assert scoped(Access("list", "", "pods", field_selector="metadata.name!=p")).name == ""
    assert scoped(Access("list", "", "pods", field_selector="=,!")).name == ""


# A tiny world, in which everything meets everything.
WORDS = st.sampled_from(["a", "b", "*"])
RESOURCES = st.sampled_from(["a", "b", "*", "a/s", "*/s", "a/*"])
SETS = st.lists(WORDS, max_size=2)
RULES = st.one_of(
    st.fixed_dictionaries(
        {
            "verbs": SETS,
            "apiGroups": SETS,
            "resources": st.lists(RESOURCES, max_size=2),
            "resourceNames": st.lists(st.sampled_from(["a", "b"]), max_size=1),
        }
    ),
    st.fixed_dictionaries(
        {"verbs": SETS, "nonResourceURLs": st.lists(st.sampled_from(["/a", "/a*", "*"]))}
    ),
)
NAMES = st.sampled_from(["a", "b"])
ACCESSES = st.one_of(
    st.builds(
        Access,
        verb=NAMES,
        group=NAMES,
        resource=NAMES,
        subresource=st.sampled_from(["", "s"]),
        namespace=st.sampled_from(["", "default"]),
        name=st.sampled_from(["", "a", "b"]),
    ),
    st.builds(Access, verb=NAMES, path=st.sampled_from(["/a", "/ab", "/b"])),
)
SUBJECTS = st.sampled_from(["User a", "Group a", "User b", "Group b"])
BINDINGS = st.tuples(st.booleans(), st.integers(0, 2), st.lists(SUBJECTS, max_size=2))


def _is_in(found: Iterable[str], wanted: str) -> bool:
    return any(each in ("*", wanted) for each in found)


def _naively_allows(made: Json, access: Access) -> bool:
    if not _is_in(made["verbs"], access.verb):
        return False
    if access.path:
        return any(
            url == access.path or (url[-1] == "*" and access.path.startswith(url[:-1]))
            for url in made.get("nonResourceURLs", ())
        )
    if not _is_in(made.get("apiGroups", ()), access.group):
        return False
    spellings = {access.resource}
    if access.subresource:
        spellings = {f"{access.resource}/{access.subresource}", f"*/{access.subresource}"}
    if not any(each == "*" or each in spellings for each in made.get("resources", ())):
        return False
    names = made.get("resourceNames") or []
    return not names or access.name in names


@given(
    roles=st.lists(st.lists(RULES, max_size=2), min_size=3, max_size=3),
    bound=st.lists(BINDINGS, max_size=3),
    access=ACCESSES,
    user=st.builds(User, NAMES, st.lists(NAMES, max_size=2).map(tuple)),
)
def test_the_authorizer_agrees_with_a_naive_reading(
    roles: list[list[Json]], bound: list[tuple[bool, int, list[str]]], access: Access, user: User
) -> None:
    authorizer = _authorizer(*(role("ClusterRole", f"r{i}", *rs) for i, rs in enumerate(roles)))
    expected = False
    for number, (in_namespace, index, subjects) in enumerate(bound):
        kind = "RoleBinding" if in_namespace else "ClusterRoleBinding"
        store(authorizer, binding(kind, f"b{number}", f"ClusterRole r{index}", *subjects))
        is_meant = {f"User {user.name}", *(f"Group {g}" for g in user.groups)} & set(subjects)
        counts = not in_namespace or access.namespace == "default"
        if is_meant and counts:
            expected |= any(_naively_allows(made, access) for made in roles[index])
    for _ in range(2):  # the second time from memory
        assert authorizer.allowed(user, access).allowed is expected


@given(owned=st.lists(RULES, max_size=3), wanted=st.lists(RULES, max_size=2), access=ACCESSES)
def test_what_is_covered_is_allowed(owned: list[Json], wanted: list[Json], access: Access) -> None:
    """Nobody who may grant something lacks it themselves."""
    if uncovered(parse_rules(owned), parse_rules(wanted)):
        return
    if any(_naively_allows(made, access) for made in wanted):
        assert any(_naively_allows(made, access) for made in owned)


@given(owned=st.lists(RULES, max_size=3))
def test_everybody_may_grant_what_they_have(owned: list[Json]) -> None:
    assert uncovered(parse_rules(owned), parse_rules(owned)) == []


@pytest.mark.parametrize(
    ("owned", "wanted", "is_covered"),
    [
        (rule("get", "", "pods"), rule("get", "", "pods", "a"), True),
        (rule("get", "", "pods", "a b"), rule("get", "", "pods", "a"), True),
        (rule("get", "", "pods", "a"), rule("get", "", "pods", "b"), False),
        (rule("get", "", "pods", "a"), rule("get", "", "pods"), False),
        (rule("get", "", "*"), rule("get", "", "pods/log"), True),
        (rule("get", "", "*/log"), rule("get", "", "pods/log"), True),
        (rule("get", "", "pods"), rule("get", "", "*"), False),
        (rule("get", "", "pods"), rule("*", "", "pods"), False),
        (rule("get", "", "pods"), rule("get", "*", "pods"), False),
        (rule("get", "", "pods"), rule("get", "", "pods/"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/a/*"]}, {"nonResourceURLs": ["/a/b"]}, True),
        ({"verbs": ["get"], "nonResourceURLs": ["/a/*"]}, {"nonResourceURLs": ["/a"]}, False),
        ({"verbs": ["get"], "nonResourceURLs": ["/a"]}, {"nonResourceURLs": ["/a*"]}, False),
        (
            {"verbs": ["get"], "nonResourceURLs": ["/a"], "resourceNames": ["x"]},
            {"nonResourceURLs": ["/a"]},
            False,
        ),
    ],
)
def test_a_rule_covers_what_it_could_allow(owned: Json, wanted: Json, is_covered: bool) -> None:
    wanted = {"verbs": ["get"]} | wanted
    assert (uncovered(parse_rules([owned]), parse_rules([wanted])) == []) is is_covered


def test_missing_rules_are_listed_by_thing() -> None:
    missing = uncovered((), parse_rules([rule("get list", "", "pods secrets", "a")]))
    assert described(missing) == [
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get" "list"]}',
    ]


def test_roles_past_a_number_of_values_allow_nothing_and_others_still_do() -> None:
    """Each verdict looks at all rules of a user: whoever writes Roles could make it take long."""
    names = " ".join(f"n{number}" for number in range(1000))
    large = [
        body
        for number in range(60)
        for body in (
            role("Role", f"a{number:02}", rule("get", "", "pods", names)),
            binding("RoleBinding", f"a{number:02}", f"Role a{number:02}", "User alice"),
        )
    ]
    authorizer = _authorizer(
        *large,
        role("Role", "late", rule("get", "", "secrets")),
        binding("RoleBinding", "late", "Role late", "User alice"),
        role("ClusterRole", "wide", rule("get", "", "configmaps")),
        binding("ClusterRoleBinding", "wide", "ClusterRole wide", "User alice"),
    )

    def judged(resource: str) -> Verdict:
        return authorizer.allowed(ALICE, Access("get", "", resource, namespace="default"))

    assert len(authorizer.grants(ALICE, "default").rules) < 55
    assert judged("configmaps").allowed
    assert judged("secrets").allowed  # small enough for what room was left
    assert "name more than 50000 verbs" in judged("services").reason
