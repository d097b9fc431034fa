"""Access: what a request wants to do. Verdict: whether it may. And the 403 that says so."""

import json

import msgspec

from kubeclient.objects import Obj
from kubeclient.selectors import SelectorError, parse_field_selector
from localkube.apiserver.request import User
from localkube.apiserver.status import ApiError, failure

_COLLECTION_VERBS = frozenset({"list", "watch", "deletecollection"})
# Kubernetes keeps these texts from looking like HTML; quotes stay.
_NO_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Access(msgspec.Struct, frozen=True, gc=False):
    """Either a resource (all but `path`) or a path outside the API groups (`verb` and `path`)."""

    verb: str
    group: str = ""
    resource: str = ""  # plural
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    field_selector: str = ""  # of a list, a watch or a collection delete; nodes are judged by it


class Verdict(msgspec.Struct, frozen=True, gc=False):
    allowed: bool
    reason: str = ""


ALLOWED = Verdict(True)
DENIED = Verdict(False)


def scoped(access: Access) -> Access:
    """As Kubernetes' authorizers see a request that the URL alone describes.

    A namespace is in itself, so a Role inside may allow to get it; and a list that asks for one
    name by its field selector is a request for that name, so resourceNames may allow it.
    """
    if access.resource == "namespaces" and not access.group and access.name:
        return msgspec.structs.replace(access, namespace=access.name)
    if access.field_selector and access.verb in _COLLECTION_VERBS and not access.name:
        return msgspec.structs.replace(access, name=_only_name(access.field_selector))
    return access


def required_field(selector: str, path: str) -> str:
    """The value that a field selector demands of `path`; empty if it demands none."""
    try:
        terms = parse_field_selector(selector)
    except SelectorError:
        return ""
    return next((term.value for term in terms if term.path == path and term.equal), "")


def _only_name(selector: str) -> str:
    return required_field(selector, "metadata.name")


def forbidden(user: User, access: Access, reason: str = "") -> ApiError:
    why = _cannot(user, access).translate(_NO_MARKUP)
    if reason:
        why = f"{why}: {reason}"
    if access.path:
        return failure(403, "Forbidden", f"forbidden: {why}", details={})
    qualified = f"{access.resource}.{access.group}" if access.group else access.resource
    named = f'{qualified} "{access.name}"' if access.name else qualified
    details: Obj = {"name": access.name} if access.name else {}
    if access.group:
        details["group"] = access.group
    details["kind"] = access.resource
    return failure(403, "Forbidden", f"{named} is forbidden: {why}", details=details)


def _cannot(user: User, access: Access) -> str:
    who = f"User {quoted(user.name)} cannot {access.verb}"
    if access.path:
        return f"{who} path {quoted(access.path)}"
    what = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
    where = f"in the namespace {quoted(access.namespace)}"
    if not access.namespace:
        where = "at the cluster scope"
    return f"{who} resource {quoted(what)} in API group {quoted(access.group)} {where}"


def quoted(text: str) -> str:
    """As Go's %q prints it (but for control characters, which are escaped JSON's way)."""
    return json.dumps(text, ensure_ascii=False)
