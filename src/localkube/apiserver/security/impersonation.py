"""Impersonate-* headers (kubectl --as): whoever may, acts as somebody else."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from localkube.apiserver.request import User
from localkube.apiserver.security.access import Access, forbidden
from localkube.apiserver.security.identities import (
    ANONYMOUS,
    AUTHENTICATED,
    SERVICE_ACCOUNT_PREFIX,
    UNAUTHENTICATED,
    service_account_groups,
)
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.status import bad_request

HEADER_PREFIX = "impersonate-"
_EXTRA_PREFIX = "impersonate-extra-"
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_ACCOUNT = re.compile(rf"{SERVICE_ACCOUNT_PREFIX}{_PART}:{_PART}(\.{_PART})*")
_AUTHENTICATION = "authentication.k8s.io"


class _Wish(NamedTuple):
    """One part of the identity that the requester wants to have. All parts must be allowed."""

    kind: str
    name: str
    access: Access
    key: str = ""  # of an extra

    def __str__(self) -> str:
        """As Go prints an ObjectReference: kind, namespace, name, uid, version, rv, field path."""
        version = f"{self.access.group}/v1" if self.access.group else ""
        fields = (self.kind, self.access.namespace, self.name, "", version, "", self.key)
        return "{" + " ".join(fields) + "}"


def is_wanted(headers: Mapping[str, str]) -> bool:
    # Asked of every request: one search is faster than one for each header.
    return f" {HEADER_PREFIX}" in f" {' '.join(headers)}"


def impersonated(headers: Mapping[str, str], requester: User, authorizer: Authorizer) -> User:
    """Whom the requester acts as. Raises ApiError (400, 403)."""
    wishes = list(_wishes(headers))
    if not wishes:
        return requester
    if wishes[0].kind not in ("User", "ServiceAccount"):
        listed = " ".join(map(str, wishes))
        raise bad_request(f"requested [{listed}] without impersonating a user")
    for wish in wishes:
        verdict = authorizer.allowed(requester, wish.access)
        if not verdict.allowed:
            raise forbidden(requester, wish.access, verdict.reason)
    return _granted(wishes, headers["impersonate-user"])


def _wishes(headers: Mapping[str, str]) -> Iterator[_Wish]:
    if user := headers.get("impersonate-user", ""):
        if _ACCOUNT.fullmatch(user):
            namespace, name = user.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
            yield _Wish("ServiceAccount", name, _access("serviceaccounts", name, namespace))
        else:
            yield _Wish("User", user, _access("users", user))
    for group in _values(headers.get("impersonate-group", "")):
        yield _Wish("Group", group, _access("groups", group))
    for header, text in headers.items():
        if header.startswith(_EXTRA_PREFIX):
            key = unquote(header[len(_EXTRA_PREFIX) :])
            for value in _values(text):
                access = Access("impersonate", _AUTHENTICATION, "userextras", key, "", value)
                yield _Wish("UserExtra", value, access, key)
    if uid := headers.get("impersonate-uid", ""):
        yield _Wish("UID", uid, Access("impersonate", _AUTHENTICATION, "uids", name=uid))


def _access(resource: str, name: str, namespace: str = "") -> Access:
    return Access("impersonate", "", resource, namespace=namespace, name=name)


def _values(text: str) -> list[str]:
    """The lines of a repeated header, which the HTTP layer has joined by commas."""
    return [value for part in text.split(",") if (value := part.strip())]


def _granted(wishes: list[_Wish], name: str) -> User:
    groups = [wish.name for wish in wishes if wish.kind == "Group"]
    if wishes[0].kind == "ServiceAccount" and not groups:
        groups = list(service_account_groups(wishes[0].access.namespace))
    if name == ANONYMOUS.name:
        if UNAUTHENTICATED not in groups:
            groups.append(UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups.append(AUTHENTICATED)
    extra: dict[str, tuple[str, ...]] = {}
    for wish in wishes:
        if wish.kind == "UserExtra":
            extra[wish.key] = (*extra.get(wish.key, ()), wish.name)
    uid = next((wish.name for wish in wishes if wish.kind == "UID"), "")
    return User(name, tuple(groups), uid, extra)
