"""Who may do what: RBAC as Kubernetes evaluates it; system:masters may all; then what nodes may.

The Authorizer holds all Roles, ClusterRoles and their bindings; whoever stores one of them tells
it by `replace`. Nothing is looked up while judging: what a user may do in a namespace is gathered
once (Grants) and kept until the next `replace`.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import TypeVar

import msgspec

from kubeclient.objects import Obj
from localkube.apiserver.request import User
from localkube.apiserver.security.access import (
    ALLOWED,
    DENIED,
    Access,
    Verdict,
    quoted,
)
from localkube.apiserver.security.aggregation import (
    ClusterRole,
    effective_rules,
    parse_cluster_role,
)
from localkube.apiserver.security.node_access import Nodes, judge, node_of
from localkube.apiserver.security.rules import (
    PolicyRule,
    matches_resource,
    matches_url,
    parse_rules,
    rule_object,
    size,
)

GROUP = "rbac.authorization.k8s.io"
MASTERS = "system:masters"
# What is remembered is forgotten past these many: users and resource names are the clients' words.
_MAX_GRANTS = 4096
_MOST_REMEMBERED_GROUPS = 64  # of a user whose grants are kept: the groups are kept with them
_MAX_VERDICTS = 1024
# Of the Roles that are bound to one user in one namespace. Each verdict looks at all of them, and
# whoever may write Roles could make every request wait. What is left out allows nothing: it is what
# was written last, so that nobody can take away what somebody else was given before. ClusterRoles,
# which administrators write, always count.
_MOST_VALUES = 50_000
_TOO_MANY = (
    f"the Roles of this user name more than {_MOST_VALUES} verbs, groups, resources and names"
)
_Key = TypeVar("_Key")
_Found = TypeVar("_Found")


# User or Group, and its name: a service account is the user that it acts as. A plain tuple: of one
# binding 20,000 are made in one turn of the event loop.
Subject = tuple[str, str]


# Compared by identity: a hash of 20,000 subjects for each of them took 13 s.
class _Binding(msgspec.Struct, frozen=True, eq=False):
    name: str
    namespace: str  # empty for a ClusterRoleBinding
    role_kind: str
    role_name: str
    version: int  # when it was written
    # In the order of the object, each as the object names it.
    subjects: tuple[tuple[Subject, str, str], ...]

    def granted_to(self, subjects: Container[Subject]) -> str:
        called = next((kind, name) for subject, kind, name in self.subjects if subject in subjects)
        whom = f"{called[0]} {quoted(called[1])}"
        kind = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        place = f"{self.name}/{self.namespace}" if self.namespace else self.name
        return (
            f"RBAC: allowed by {kind} {quoted(place)} "
            f"of {self.role_kind} {quoted(self.role_name)} to {whom}"
        )


class Grants:
    """What one user may do in one namespace (or, without one, in the whole cluster)."""

    def __init__(self, rules: list[tuple[PolicyRule, str]], problems: list[str]) -> None:
        self.rules = rules  # each with the reason to give when it allows something
        self.problems = problems  # roles that bindings name and that are not there
        self._denied = DENIED
        if problems:
            self._denied = Verdict(False, f"RBAC: {joined(problems)}")
        # For (verb, group, resource): the verdict, or verdicts by name where only some are allowed.
        self._by_resource: dict[tuple[str, str, str], Verdict | dict[str, Verdict]] = {}
        self._by_path: dict[tuple[str, str], Verdict] = {}

    def judge(self, access: Access) -> Verdict:
        if access.path:
            return self._judge_path(access.verb, access.path)
        resource = access.resource
        if access.subresource:
            resource = f"{resource}/{access.subresource}"
        key = (access.verb, access.group, resource)
        found = self._by_resource.get(key)
        if found is None:
            found = self._judge_resource(*key)
            _remember(self._by_resource, key, found)
        if isinstance(found, dict):
            # A list or a create has no name, so that rules with resourceNames do not allow it.
            return found.get(access.name, self._denied)
        return found

    def _judge_resource(self, verb: str, group: str, resource: str) -> Verdict | dict[str, Verdict]:
        by_name: dict[str, Verdict] = {}
        for rule, reason in self.rules:
            if matches_resource(rule, verb, group, resource):
                if not rule.names:
                    return Verdict(True, reason)
                for name in rule.names:
                    by_name.setdefault(name, Verdict(True, reason))
        return by_name or self._denied

    def _judge_path(self, verb: str, path: str) -> Verdict:
        found = self._by_path.get((verb, path))
        if found is None:
            reasons = (reason for rule, reason in self.rules if matches_url(rule, verb, path))
            reason = next(reasons, None)
            found = self._denied if reason is None else Verdict(True, reason)
            _remember(self._by_path, (verb, path), found)
        return found


class Authorizer:
    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._roles: dict[tuple[str, str], tuple[PolicyRule, ...]] = {}  # by namespace and name
        # Of these Roles: how many values, and when they were written.
        self._sizes: dict[tuple[str, str], tuple[int, int]] = {}
        self._cluster_roles: dict[str, ClusterRole] = {}
        self._bindings: dict[tuple[str, str], _Binding] = {}  # by namespace (or "") and name
        # By namespace (or "") and subject.
        self._of_subject: dict[tuple[str, Subject], list[_Binding]] = {}
        self._grants: dict[tuple[str, tuple[str, ...], str], Grants] = {}

    def replace(self, plural: str, namespace: str, name: str, found: Obj | None) -> None:
        """An object of the RBAC group is now `found`, or gone. Other resources are ignored."""
        change = _CHANGES.get(plural)
        if change is not None:
            change(self, namespace, name, found)
            # All of them: one ClusterRole can reach any user, by bindings and by aggregation.
            self._grants.clear()

    def allowed(self, user: User, access: Access) -> Verdict:
        if MASTERS in user.groups:
            return ALLOWED
        verdict = self.grants(user, access.namespace).judge(access)
        if verdict.allowed or not user.name.startswith("system:node:"):
            return verdict
        return self._judge_node(user, access, verdict)

    def _judge_node(self, user: User, access: Access, by_rbac: Verdict) -> Verdict:
        node = node_of(user)
        if node is None:
            return by_rbac
        verdict = judge(node, access, self._nodes)
        if verdict.allowed:
            return verdict
        return Verdict(False, "\n".join(filter(None, (verdict.reason, by_rbac.reason))))

    def grants(self, user: User, namespace: str) -> Grants:
        key = (user.name, user.groups, namespace)
        found = self._grants.get(key)
        if found is None:
            found = self._gathered(user, namespace)
            if len(self._grants) >= _MAX_GRANTS:
                self._grants.clear()
            if len(user.groups) <= _MOST_REMEMBERED_GROUPS:
                self._grants[key] = found
        return found

    def role_rules(self, kind: str, name: str, namespace: str) -> tuple[PolicyRule, ...] | None:
        """The rules of a role as a binding in `namespace` refers to it; None if it is not there."""
        if kind == "Role":
            return self._roles.get((namespace, name))
        if kind == "ClusterRole" and name in self._cluster_roles:
            return effective_rules(self._cluster_roles, name)
        return None

    def stale_aggregates(self) -> Iterator[tuple[str, list[Obj]]]:
        """Aggregated ClusterRoles whose stored rules are out of date, with the rules they should
        have.
        """
        for name, role in self._cluster_roles.items():
            if role.selectors is not None:
                rules = effective_rules(self._cluster_roles, name)
                if rules != role.rules:
                    yield name, [rule_object(rule) for rule in rules]

    def _gathered(self, user: User, namespace: str) -> Grants:
        subjects = {("User", user.name), *(("Group", group) for group in user.groups)}
        rules: list[tuple[PolicyRule, str]] = []
        problems: list[str] = []
        bindings = list(self._bindings_of(subjects, namespace))
        left_out = self._left_out(bindings)
        for binding in bindings:
            found = self.role_rules(binding.role_kind, binding.role_name, binding.namespace)
            if found is None:
                problems.append(_missing(binding))
                continue
            if binding in left_out:
                problems.append(f"{_TOO_MANY}, {quoted(binding.role_name)} is left out")
                continue
            reason = binding.granted_to(subjects)
            rules.extend((rule, reason) for rule in found)
        return Grants(rules, problems)

    def _left_out(self, bindings: list[_Binding]) -> set[_Binding]:
        """What was written last, if all together are too much."""
        sized = [
            (*self._sizes[key], binding)
            for binding in bindings
            if binding.role_kind == "Role"
            and (key := (binding.namespace, binding.role_name)) in self._sizes
        ]
        room = _MOST_VALUES
        if sum(needed for needed, _, _ in sized) <= room:
            return set()
        left_out: set[_Binding] = set()
        for needed, _, binding in sorted(sized, key=_written):
            if needed > room:
                left_out.add(binding)
            else:
                room -= needed
        return left_out

    def _bindings_of(self, subjects: Iterable[Subject], namespace: str) -> Iterator[_Binding]:
        # The whole cluster first, as in Kubernetes: the first rule that matches gives the reason.
        for place in ("", namespace) if namespace else ("",):
            found: set[_Binding] = set()
            for subject in subjects:
                found.update(self._of_subject.get((place, subject), ()))
            yield from sorted(found, key=lambda binding: binding.name)

    def _replace_role(self, namespace: str, name: str, found: Obj | None) -> None:
        if found is None:
            self._roles.pop((namespace, name), None)
            self._sizes.pop((namespace, name), None)
        else:
            rules = self._roles[namespace, name] = parse_rules(found.get("rules"))
            self._sizes[namespace, name] = sum(map(size, rules)), _version(found)

    def _replace_cluster_role(self, namespace: str, name: str, found: Obj | None) -> None:
        if found is None:
            self._cluster_roles.pop(name, None)
        else:
            self._cluster_roles[name] = parse_cluster_role(found)

    def _replace_binding(self, namespace: str, name: str, found: Obj | None) -> None:
        old = self._bindings.pop((namespace, name), None)
        if old is not None:
            for subject, _, _ in old.subjects:
                self._forget(subject, namespace, old)
        if found is not None:
            new = self._bindings[namespace, name] = _parse_binding(namespace, name, found)
            for subject, _, _ in new.subjects:
                self._of_subject.setdefault((namespace, subject), []).append(new)

    def _forget(self, subject: Subject, namespace: str, binding: _Binding) -> None:
        bindings = self._of_subject[namespace, subject]
        bindings.remove(binding)
        if not bindings:
            del self._of_subject[namespace, subject]


_CHANGES: dict[str, Callable[[Authorizer, str, str, Obj | None], None]] = {
    "roles": Authorizer._replace_role,
    "clusterroles": Authorizer._replace_cluster_role,
    "rolebindings": Authorizer._replace_binding,
    "clusterrolebindings": Authorizer._replace_binding,
}


def _parse_binding(namespace: str, name: str, found: Obj) -> _Binding:
    role = found.get("roleRef") or {}
    parsed = (_parse_subject(each, namespace) for each in found.get("subjects") or ())
    subjects = tuple(subject for subject in parsed if subject is not None)
    kind, of = role.get("kind", ""), role.get("name", "")
    return _Binding(name, namespace, kind, of, _version(found), subjects)


def _version(found: Obj) -> int:
    return int((found.get("metadata") or {}).get("resourceVersion") or 0)


def _written(row: tuple[int, int, _Binding]) -> tuple[int, str]:
    """When the binding or its role was written, whichever was later."""
    _, version, binding = row
    return max(version, binding.version), binding.name


def _parse_subject(found: Obj, binding_namespace: str) -> tuple[Subject, str, str] | None:
    kind, name = found.get("kind", ""), found.get("name", "")
    if kind in ("User", "Group"):
        return (kind, name), kind, name
    namespace = found.get("namespace") or binding_namespace
    if kind != "ServiceAccount" or not namespace:
        return None
    user = f"system:serviceaccount:{namespace}:{name}"
    return ("User", user), kind, f"{name}/{namespace}"


def _missing(binding: _Binding) -> str:
    kind = binding.role_kind
    if kind not in ("Role", "ClusterRole"):
        return f"unsupported role reference kind: {quoted(kind)}"
    return f"{kind.lower()}.{GROUP} {quoted(binding.role_name)} not found"


def joined(problems: Iterable[str]) -> str:
    """Several errors in one, as Kubernetes joins them."""
    listed = list(dict.fromkeys(problems))
    return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"


def _remember(verdicts: dict[_Key, _Found], key: _Key, verdict: _Found) -> None:
    if len(verdicts) >= _MAX_VERDICTS:
        verdicts.clear()
    verdicts[key] = verdict
