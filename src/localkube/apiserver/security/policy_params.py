"""Nobody reads by an admission policy what they may not read themselves: its parameters."""

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kinds
from localkube.apiserver.request import User
from localkube.apiserver.security.access import Access
from localkube.apiserver.security.rbac import MASTERS, Authorizer
from localkube.apiserver.status import FieldError, forbidden_field


def param_kind_errors(
    authorizer: Authorizer, kinds: Kinds, user: User, new: Obj, old: Obj | None
) -> list[FieldError]:
    """Of a policy: whoever writes it must be allowed to get all objects of its paramKind."""
    kind = new["spec"].get("paramKind")
    known = old is not None and old["spec"].get("paramKind") == kind
    if kind is None or known or MASTERS in user.groups:
        return []
    group, resource = _resource(kind, kinds)
    access = Access("get", group, resource, namespace="*", name="*")
    if authorizer.allowed(user, access).allowed:
        return []
    text = (
        f'user {user.name} must have "get" permission on all objects of the referenced paramKind '
        f"(kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')})"
    )
    return [forbidden_field("spec.paramKind", text)]


def param_ref_errors(
    authorizer: Authorizer,
    kinds: Kinds,
    user: User,
    new: Obj,
    old: Obj | None,
    policy: Obj | None,
) -> list[FieldError]:
    """Of a binding: whoever writes it must be allowed to read the objects that it names."""
    ref = new["spec"].get("paramRef")
    known = old is not None and all(
        old["spec"].get(key) == new["spec"].get(key) for key in ("paramRef", "policyName")
    )
    if ref is None or known or MASTERS in user.groups:
        return []
    kind = ((policy or {}).get("spec") or {}).get("paramKind")
    # If nobody knows what is meant, it may be anything.
    group, resource = ("*", "*") if kind is None else _resource(kind, kinds)
    name, namespace = ref.get("name", ""), ref.get("namespace", "")
    verb = "get" if name else "list"
    access = Access(verb, group, resource, namespace=namespace, name=name)
    if authorizer.allowed(user, access).allowed:
        return []
    text = f'user {user.name} does not have "{verb}" permission'
    if policy is None:
        name = new["spec"].get("policyName", "")
        unknown = f"unable to get policy {name} to determine minimum required permissions"
        text = f"{unknown} and {text} for all groups, versions and resources"
    else:
        text += " on the object referenced by paramRef"
    return [forbidden_field("spec.paramRef", text)]


def _resource(kind: Obj, kinds: Kinds) -> tuple[str, str]:
    group, _, version = kind.get("apiVersion", "").rpartition("/")
    found = kinds.by_kind(group, version, kind.get("kind", ""))
    return group, "*" if found is None else found.plural
