"""Nobody hands out rights that they do not have: checks before a role or a binding is stored."""

from collections.abc import Callable
from typing import Any, Protocol

from kubeclient.objects import Obj
from localkube.apiserver.request import User
from localkube.apiserver.security.access import Access, Verdict, quoted
from localkube.apiserver.security.rbac import GROUP, MASTERS, Grants
from localkube.apiserver.security.rules import (
    PolicyRule,
    described,
    parse_rules,
    parts,
    uncovered,
)
from localkube.apiserver.status import ApiError, failure

_MOST_LOOKS = 2_000_000  # at a rule that is held, for a right that is to be handed out
_ROLES = frozenset({"roles", "clusterroles"})
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_EVERYTHING = (PolicyRule(("*",), ("*",), ("*",)), PolicyRule(("*",), urls=("*",)))
_ONLY_ADMINS = "must have cluster-admin privileges to use the aggregationRule"
# What the garbage collector changes of an object, and what every write changes.
_COLLECTION_FIELDS = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")


class Rights(Protocol):
    """What is asked of an Authorizer."""

    def allowed(self, user: User, access: Access) -> Verdict: ...
    def grants(self, user: User, namespace: str) -> Grants: ...
    def role_rules(self, kind: str, name: str, namespace: str) -> tuple[PolicyRule, ...] | None: ...


class RightsFromThread:
    """Rights as long work sees them: each question is answered on the event loop."""

    def __init__(self, rights: Rights, on_loop: Callable[[Callable[[], Any]], Any]) -> None:
        self._rights = rights
        self._on_loop = on_loop

    def allowed(self, user: User, access: Access) -> Verdict:
        verdict: Verdict = self._on_loop(lambda: self._rights.allowed(user, access))
        return verdict

    def grants(self, user: User, namespace: str) -> Grants:
        found: Grants = self._on_loop(lambda: self._rights.grants(user, namespace))
        return found

    def role_rules(self, kind: str, name: str, namespace: str) -> tuple[PolicyRule, ...] | None:
        found: tuple[PolicyRule, ...] | None = self._on_loop(
            lambda: self._rights.role_rules(kind, name, namespace)
        )
        return found


def escalation_refusal(
    authorizer: Rights, user: User, access: Access, new: Obj, old: Obj | None
) -> ApiError | None:
    """Why `user` may not store `new` over `old`; None if they may, or if it is no RBAC object.

    `access` is that of the request: its group, resource, namespace and name count.
    """
    if access.group != GROUP or MASTERS in user.groups:
        return None
    # The garbage collector has to change references of roles that grant more than it may do itself.
    if old is not None and _without_bookkeeping(new) == _without_bookkeeping(old):
        return None
    if access.resource in _ROLES:
        return _role_refusal(authorizer, user, access, new, old)
    if access.resource in _BINDINGS:
        return _binding_refusal(authorizer, user, access, new)
    return None


def _role_refusal(
    authorizer: Rights, user: User, access: Access, new: Obj, old: Obj | None
) -> ApiError | None:
    escalate = Access("escalate", GROUP, access.resource, "", access.namespace, access.name)
    if authorizer.allowed(user, escalate).allowed:
        return None
    name = new["metadata"].get("name", "")
    why = _not_held(authorizer, user, access.namespace, parse_rules(new.get("rules")))
    if why is not None:
        return _forbidden(access.resource, name, why)
    aggregates = _aggregates(new) or (old is not None and _aggregates(old))
    if aggregates and _not_held(authorizer, user, access.namespace, _EVERYTHING) is not None:
        return _forbidden(access.resource, name, _ONLY_ADMINS)
    return None


def _binding_refusal(authorizer: Rights, user: User, access: Access, new: Obj) -> ApiError | None:
    role = new.get("roleRef") or {}
    kind, name = role.get("kind", ""), role.get("name", "")
    plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
    if plural is not None:
        bind = Access("bind", role.get("apiGroup", ""), plural, "", access.namespace, name)
        if authorizer.allowed(user, bind).allowed:
            return None
    rules = authorizer.role_rules(kind, name, access.namespace)
    if rules is None:
        return _role_not_found(access.resource, name)
    why = _not_held(authorizer, user, access.namespace, rules)
    if why is None:
        return None
    return _forbidden(access.resource, new["metadata"].get("name", ""), why)


def _not_held(
    authorizer: Rights, user: User, namespace: str, wanted: tuple[PolicyRule, ...]
) -> str | None:
    grants = authorizer.grants(user, namespace)
    asked = sum(map(parts, wanted))
    if asked * max(len(grants.rules), 100) > _MOST_LOOKS:
        return (
            f"its rules are {asked} rights (each verb on each group, resource and name), which are "
            "too many to compare with those that you hold: name fewer in one rule, or in one role"
        )
    missing = uncovered((rule for rule, _ in grants.rules), wanted)
    if not missing:
        return None
    groups = " ".join(quoted(group) for group in user.groups)
    lines = "\n".join(described(missing))
    why = (
        f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant "
        f"RBAC permissions not currently held:\n{lines}"
    )
    if grants.problems:
        why += f"; resolution errors: [{', '.join(grants.problems)}]"
    return why


def _aggregates(role: Obj) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _without_bookkeeping(found: Obj) -> dict[str, Any]:
    metadata = {k: v for k, v in found["metadata"].items() if k not in _COLLECTION_FIELDS}
    return found | {"metadata": metadata}


def _details(plural: str, name: str) -> Obj:
    return {"name": name, "group": GROUP, "kind": plural}


def _forbidden(plural: str, name: str, why: str) -> ApiError:
    message = f'{plural}.{GROUP} "{name}" is forbidden: {why}'
    return failure(403, "Forbidden", message, details=_details(plural, name))


def _role_not_found(plural: str, name: str) -> ApiError:
    # Kubernetes blames the kind of the request, not that of the role.
    message = f'{plural}.{GROUP} "{name}" not found'
    return failure(404, "NotFound", message, details=_details(plural, name))
