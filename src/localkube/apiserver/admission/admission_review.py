"""AdmissionReview: what a webhook is asked, and what it may answer."""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes
from localkube.apiserver.admission.matching import namespace_of
from localkube.apiserver.decode.json_text import BadJson, parse
from localkube.apiserver.decode.weight import MAX_VALUES, TooManyValues, is_long
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import User

_GROUP = "admission.k8s.io"
_KNOWN_VERSIONS = ("v1", "v1beta1")
_NOBODY = User(name="")


class InvalidReview(Exception):
    """A webhook's answer that cannot be used; says why."""


@dataclass(frozen=True, slots=True)
class Verdict:
    allowed: bool
    status: Obj = field(default_factory=dict)
    patch: list[Any] = field(default_factory=list)
    is_long: bool = False  # so much of a patch that it is applied in a thread
    warnings: tuple[str, ...] = ()


def review_version(accepted: tuple[str, ...]) -> str | None:
    """The first that both sides know."""
    return next((version for version in accepted if version in _KNOWN_VERSIONS), None)


def review(version: str, request: Obj) -> Obj:
    return {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}


def admission_request(
    uid: str, attributes: Attributes, kind: Kind, obj: Obj | None, old: Obj | None
) -> Obj:
    """`kind`, `obj` and `old` in the version that the webhook asked for."""
    asked = attributes.kind
    request: Obj = {"uid": uid, "kind": _kind(kind), "resource": _resource(kind)}
    _put(request, "subResource", attributes.subresource)
    request |= {"requestKind": _kind(asked), "requestResource": _resource(asked)}
    _put(request, "requestSubResource", attributes.subresource)
    _put(request, "name", attributes.name)
    _put(request, "namespace", namespace_of(attributes))
    options = f"{attributes.operation.value.capitalize()}Options"
    return request | {
        "operation": attributes.operation.value,
        "userInfo": _user_info(attributes.user or _NOBODY),
        "object": obj,
        "oldObject": old,
        "dryRun": attributes.dry_run,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"} | attributes.options,
    }


def verdict_of(answer: Any, uid: str, version: str, *, mutating: bool) -> Verdict:
    """Raises InvalidReview."""
    if not isinstance(answer, dict) or not isinstance(answer.get("response"), dict):
        raise _unusable("webhook response was absent")
    response = answer["response"]
    if version == "v1":
        _check_v1(answer, uid)
    patch = response.get("patch") or ""
    kind = response.get("patchType")
    if not mutating:
        _check_no_patch(patch, kind)
    elif version == "v1":
        _check_patch_type(patch, kind)
    text = _decoded(patch) if mutating and patch else b""
    return Verdict(
        allowed=response.get("allowed") is True,
        status=response["status"] if isinstance(response.get("status"), dict) else {},
        patch=_operations(text) if text else [],
        is_long=is_long(text),
        warnings=tuple(text for text in response.get("warnings") or () if isinstance(text, str)),
    )


def _check_v1(answer: Obj, uid: str) -> None:
    found = answer["response"].get("uid", "")
    if found != uid:
        raise _unusable(f'expected response.uid="{uid}", got "{found}"')
    kind = f"{answer.get('apiVersion', '')}, Kind={answer.get('kind', '')}"
    if kind != f"{_GROUP}/v1, Kind=AdmissionReview":
        expected = f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview"
        raise _unusable(f"{expected}, got {kind}")


def _check_no_patch(patch: Any, kind: Any) -> None:
    if patch:
        raise _unusable("validating webhook may not return response.patch")
    if kind is not None:
        raise _unusable("validating webhook may not return response.patchType")


def _check_patch_type(patch: Any, kind: Any) -> None:
    if patch and kind is None:
        raise _unusable("webhook returned response.patch but not response.patchType")
    if not patch and kind is not None:
        raise _unusable("webhook returned response.patchType but not response.patch")
    if patch and kind != "JSONPatch":
        raise _unusable(f'webhook returned invalid response.patchType of "{kind}"')


def _decoded(patch: Any) -> bytes:
    try:
        return base64.b64decode(patch, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise _undecodable(str(error)) from None


def _operations(patch: bytes) -> list[Any]:
    try:
        found = parse(patch)
    except TooManyValues:
        raise _undecodable(f"more than {MAX_VALUES} values") from None
    except BadJson as error:
        raise _undecodable(str(error)) from None
    if not isinstance(found, list):
        raise _undecodable("not a list")
    return found


def _undecodable(why: str) -> InvalidReview:
    return InvalidReview(f"received undecodable patch in webhook response: {why}")


def _unusable(why: str) -> InvalidReview:
    return InvalidReview(f"received invalid webhook response: {why}")


def _kind(kind: Kind) -> Obj:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(kind: Kind) -> Obj:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _put(request: Obj, key: str, text: str) -> None:
    if text:
        request[key] = text


def _user_info(user: User) -> Obj:
    found: Obj = {}
    _put(found, "username", user.name)
    _put(found, "uid", user.uid)
    if user.groups:
        found["groups"] = list(user.groups)
    if user.extra:
        found["extra"] = {key: list(values) for key, values in user.extra.items()}
    return found
