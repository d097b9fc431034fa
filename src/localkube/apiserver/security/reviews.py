"""Reviews: questions about access that are asked by creating an object, and answered in it."""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.request import User
from localkube.apiserver.security.access import Access
from localkube.apiserver.security.authentication import Authenticator
from localkube.apiserver.security.node_access import node_of
from localkube.apiserver.security.rbac import Authorizer, joined
from localkube.apiserver.security.review_selectors import (
    field_selector,
    ignored,
    selector_errors,
)
from localkube.apiserver.security.rules import PolicyRule, rule_object
from localkube.apiserver.status import (
    ApiError,
    FieldError,
    bad_request,
    invalid,
    invalid_value,
    too_many,
)

_AUTHORIZATION = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"
_ONE_OF_TWO = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_NOT_BOTH = "cannot be specified in combination with resourceAttributes"
_MOST_GROUPS = 1_000
_MOST_REQUIREMENTS = 1_000
_NODES = "node authorizer does not support user rule resolution"


@dataclass(frozen=True, slots=True)
class Question:
    """A review as it was posted. `body` has been checked against its schema, and names the owners
    of its fields."""

    body: Obj
    user: User
    namespace: str  # of the URL
    authorizer: Authorizer
    authenticator: Authenticator
    now_s: float


def review(kind: str, question: Question) -> Obj:
    """The object with its answer. Raises ApiError."""
    return _ANSWERS[kind](question)


def _answered(kind: str, group: str, body: Obj, status: Obj) -> Obj:
    return {
        "kind": kind,
        "apiVersion": f"{group}/v1",
        "metadata": body.get("metadata") or {},
        "spec": body.get("spec") or {},
        "status": status,
    }


def _own_access(question: Question) -> Obj:
    spec = question.body.get("spec") or {}
    _refuse(_attribute_errors(spec) + _metadata_errors(question.body, "must be empty", ()))
    return _judged("SelfSubjectAccessReview", question, question.user, spec)


def _access_of_somebody(question: Question) -> Obj:
    spec = question.body.get("spec") or {}
    _refuse(_subject_errors(spec) + _metadata_errors(question.body, "must be empty", ()))
    return _judged("SubjectAccessReview", question, _subject(spec), spec)


def _access_in_namespace(question: Question) -> Obj:
    spec = question.body.get("spec") or {}
    why = "must be empty except for namespace"
    errors = _subject_errors(spec) + _metadata_errors(question.body, why, ("namespace",))
    namespace = (spec.get("resourceAttributes") or {}).get("namespace", "")
    if spec.get("resourceAttributes") is not None and namespace != question.namespace:
        field = "spec.resourceAttributes.namespace"
        errors.append(invalid_value(field, namespace, "must match metadata.namespace"))
    if (path := spec.get("nonResourceAttributes")) is not None:
        why = "disallowed on this kind of request"
        errors.append(invalid_value("spec.nonResourceAttributes", _go_fields(path), why))
    _refuse(errors)
    answer = _judged("LocalSubjectAccessReview", question, _subject(spec), spec)
    return answer | {"metadata": answer["metadata"] | {"namespace": question.namespace}}


def _judged(kind: str, question: Question, user: User, spec: Obj) -> Obj:
    verdict = question.authorizer.allowed(user, _access(spec))
    status: Obj = {"allowed": verdict.allowed}
    if verdict.reason:
        status["reason"] = verdict.reason
    if problems := ignored(spec.get("resourceAttributes") or {}):
        status["evaluationError"] = "; ".join(problems)
    return _answered(kind, _AUTHORIZATION, question.body, status)


def _own_rules(question: Question) -> Obj:
    namespace = (question.body.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise bad_request("no namespace on request")
    grants = question.authorizer.grants(question.user, namespace)
    is_node = node_of(question.user) is not None
    rules = [rule for rule, _ in grants.rules]
    status: Obj = {
        "resourceRules": [_without(rule, "nonResourceURLs") for rule in rules if rule.resources],
        "nonResourceRules": [_url_rule(rule) for rule in rules if rule.urls],
        "incomplete": is_node,
    }
    if problems := ([_NODES] if is_node else []) + grants.problems:
        status["evaluationError"] = joined(problems)
    return _answered("SelfSubjectRulesReview", _AUTHORIZATION, {}, status)


def _without(rule: PolicyRule, field: str) -> Obj:
    return {key: value for key, value in rule_object(rule).items() if key != field}


def _url_rule(rule: PolicyRule) -> Obj:
    return {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)}


def _own_identity(question: Question) -> Obj:
    now = datetime.datetime.fromtimestamp(int(question.now_s), datetime.UTC)
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": f"{_AUTHENTICATION}/v1",
        "metadata": {"creationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "status": {"userInfo": _user_info(question.user)},
    }


def _token(question: Question) -> Obj:
    spec = question.body.get("spec") or {}
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    found = question.authenticator.review(spec["token"], spec.get("audiences") or ())
    status: Obj
    if isinstance(found, str):
        status = {"user": {}, "error": found}
    else:
        user = _user_info(found.user)
        status = {"authenticated": True, "user": user, "audiences": list(found.audiences)}
    return _answered("TokenReview", _AUTHENTICATION, question.body, status)


_ANSWERS: dict[str, Callable[[Question], Obj]] = {
    "SelfSubjectAccessReview": _own_access,
    "SubjectAccessReview": _access_of_somebody,
    "LocalSubjectAccessReview": _access_in_namespace,
    "SelfSubjectRulesReview": _own_rules,
    "SelfSubjectReview": _own_identity,
    "TokenReview": _token,
}


def _user_info(user: User) -> Obj:
    info: Obj = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _subject(spec: Obj) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def _access(spec: Obj) -> Access:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        # An Access without a path is one to a resource. This one matches what "" would: only "*".
        return Access(verb=path.get("verb", ""), path=path.get("path", "") or "\0")
    wanted = spec["resourceAttributes"]
    return Access(
        verb=wanted.get("verb", ""),
        group=wanted.get("group", ""),
        resource=wanted.get("resource", ""),
        subresource=wanted.get("subresource", ""),
        namespace=wanted.get("namespace", ""),
        name=wanted.get("name", ""),
        field_selector=field_selector(wanted),
    )


def _subject_errors(spec: Obj) -> list[FieldError]:
    somebody = spec.get("user") or spec.get("groups")
    why = "at least one of user or group must be specified"
    nobody = [] if somebody else [invalid_value("spec.user", "", why)]
    return _one_of_two(spec) + nobody + _size_errors(spec) + _selector_errors(spec)


def _size_errors(spec: Obj) -> list[FieldError]:
    """The authorizer belongs to the event loop, so that no review may ask for much."""
    found = len(spec.get("groups") or ())
    return [too_many("spec.groups", found, _MOST_GROUPS)] if found > _MOST_GROUPS else []


def _selector_errors(spec: Obj) -> list[FieldError]:
    attributes = spec.get("resourceAttributes") or {}
    for name in ("fieldSelector", "labelSelector"):
        found = len((attributes.get(name) or {}).get("requirements") or ())
        if found > _MOST_REQUIREMENTS:
            place = f"spec.resourceAttributes.{name}.requirements"
            return [too_many(place, found, _MOST_REQUIREMENTS)]
    return selector_errors(attributes)


def _attribute_errors(spec: Obj) -> list[FieldError]:
    return _one_of_two(spec) + _selector_errors(spec)


def _one_of_two(spec: Obj) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        return [invalid_value("spec.nonResourceAttributes", _go_fields(path), _NOT_BOTH)]
    if resource is None and path is None:
        return [invalid_value("spec.resourceAttributes", None, _ONE_OF_TWO)]
    return []


def _go_fields(attributes: Mapping[str, Any]) -> Obj:
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}


def _metadata_errors(body: Obj, why: str, allowed: tuple[str, ...]) -> list[FieldError]:
    metadata = body.get("metadata") or {}
    if any(value and key not in ("managedFields", *allowed) for key, value in metadata.items()):
        return [invalid_value("metadata", metadata, why)]
    return []


def _refuse(errors: list[FieldError]) -> None:
    if errors:
        error: ApiError = invalid("", _AUTHORIZATION, "", errors)
        del error.status["details"]["kind"]  # Kubernetes has forgotten the kind by then
        raise error
