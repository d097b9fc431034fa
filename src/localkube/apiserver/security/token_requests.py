"""POST serviceaccounts/<name>/token: a TokenRequest and its answer."""

import datetime
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from kubeclient.objects import Obj
from localkube.apiserver.security.service_account_tokens import (
    ISSUER,
    Binding,
    Lifetime,
    Ref,
    ServiceAccountTokens,
)
from localkube.apiserver.status import (
    ApiError,
    FieldError,
    bad_request,
    failure,
    invalid,
    invalid_value,
)

GROUP = "authentication.k8s.io"
_DEFAULT_S = 3600
_SHORTEST_S = 600
_LONGEST_S = 1 << 32
# What a pod's projected volume asks for by default. Such a token lives on while its pod does, for
# programs that read the file but once; `warnafter` says when it should have been renewed.
_PROJECTED_S = 3607
_EXTENDED_S = 365 * 24 * 3600

# (plural, namespace, name) -> the object
Find: TypeAlias = Callable[[str, str, str], Obj | None]


class _ObjectRef(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    audiences: list[str] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: _ObjectRef | None = None


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _TokenRequest(msgspec.Struct, frozen=True):
    metadata: _Metadata | None = None
    spec: _Spec | None = None


def answer_token_request(
    body: Obj, account: Obj, *, tokens: ServiceAccountTokens, find: Find, now_s: float
) -> Obj:
    """The TokenRequest with its status. Raises ApiError."""
    request = _parse(body)
    metadata = account["metadata"]
    _check_metadata(request.metadata or _Metadata(), metadata)
    spec = request.spec or _Spec()
    seconds = _DEFAULT_S if spec.expiration_seconds is None else spec.expiration_seconds
    if errors := _expiration_errors(seconds):
        raise invalid("TokenRequest", GROUP, "", errors)
    audiences = spec.audiences or [ISSUER]
    binding = _binding(spec.bound_object_ref, metadata, find)
    issued_s = int(now_s)
    lifetime = Lifetime(issued_s, seconds)
    if binding.pod is not None and seconds == _PROJECTED_S and set(audiences) <= {ISSUER}:
        binding = msgspec.structs.replace(binding, warnafter=issued_s + seconds)
        lifetime = Lifetime(issued_s, _EXTENDED_S)
    return {
        "kind": "TokenRequest",
        "apiVersion": f"{GROUP}/v1",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "creationTimestamp": _stamp(issued_s),
        },
        "spec": {
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": (body.get("spec") or {}).get("boundObjectRef"),
        },
        "status": {
            "token": tokens.sign(binding, audiences, lifetime),
            "expirationTimestamp": _stamp(issued_s + seconds),
        },
    }


def _parse(body: Obj) -> _TokenRequest:
    try:
        return msgspec.convert(body, _TokenRequest)
    except msgspec.ValidationError as error:
        raise bad_request(
            f'TokenRequest in version "v1" cannot be handled as a TokenRequest: {error}'
        ) from error


def _check_metadata(given: _Metadata, account: Obj) -> None:
    name = account["name"]
    if given.name not in ("", name):
        why = "must match the service account name if specified"
        raise invalid(
            "TokenRequest", GROUP, name, [invalid_value("metadata.name", given.name, why)]
        )
    if given.namespace not in ("", account["namespace"]):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if given.uid not in ("", account["uid"]):
        raise _conflict(
            f"TokenRequest.{GROUP}",
            {"name": name, "group": GROUP, "kind": "TokenRequest"},
            f"the UID in the token request ({given.uid}) does not match the UID of the service "
            f"account ({account['uid']})",
        )


def _expiration_errors(seconds: int) -> list[FieldError]:
    field = "spec.expirationSeconds"
    if seconds < _SHORTEST_S:
        return [invalid_value(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST_S:
        why = "may not specify a duration larger than 2^32 seconds"
        return [invalid_value(field, seconds, why)]
    return []


def _binding(ref: _ObjectRef | None, account: Obj, find: Find) -> Binding:
    namespace = account["namespace"]
    binding = Binding(namespace, Ref(account["name"], account["uid"]))
    if ref is None:
        return binding
    kind, name = ref.kind, ref.name
    if ref.api_version != "v1" or kind not in ("Pod", "Secret", "Node"):
        raise bad_request(
            f"cannot bind token to object of type {_type_text(ref.api_version, kind)}"
        )
    plural = f"{kind.lower()}s"
    found = find(plural, "" if kind == "Node" else namespace, name)
    if found is None:
        details = {"name": name, "kind": plural}
        raise failure(404, "NotFound", f'{plural} "{name}" not found', details=details)
    if kind == "Pod" and found["spec"].get("serviceAccountName") != account["name"]:
        raise bad_request(
            f'cannot bind token for serviceaccount "{account["name"]}" to pod running with '
            "different serviceaccount name."
        )
    uid = found["metadata"]["uid"]
    if ref.uid not in ("", uid):
        raise _conflict(
            kind,
            {"name": name, "kind": kind},
            f"the UID in the bound object reference ({ref.uid}) does not match the UID in "
            "record. The object might have been deleted and then recreated",
        )
    if kind == "Pod":
        return msgspec.structs.replace(binding, pod=Ref(name, uid), node=_node_of(found, find))
    return msgspec.structs.replace(binding, **{kind.lower(): Ref(name, uid)})


def _node_of(pod: Obj, find: Find) -> Ref | None:
    name = pod["spec"].get("nodeName", "")
    if not name:
        return None
    node = find("nodes", "", name)
    return Ref(name, node["metadata"]["uid"] if node else "")


def _type_text(version: str, kind: str) -> str:
    group, slash, short = version.rpartition("/")
    return f"{group}/{short if slash else version}, Kind={kind}"


def _conflict(what: str, details: Obj, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {what} "{details["name"]}": {why}'
    return failure(409, "Conflict", message, details=details)


def _stamp(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
