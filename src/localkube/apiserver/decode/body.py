"""Request bodies into objects, whatever the client speaks: JSON, YAML or protobuf.

    read_object     the object of a resource: its apiVersion and kind must be the endpoint's
    read_strictly   the same, and how it was written
    read_any        an object that stands for itself: DeleteOptions and the like
    read_yaml       an applied configuration
    repeated_in     which keys come twice in a patch

Refusals are ApiErrors in Kubernetes' words; nothing else is ever raised.
"""

import contextlib
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.decode import json_text, protobuf, yaml_text
from localkube.apiserver.decode.json_text import BadJson
from localkube.apiserver.decode.protobuf import BadProtobuf
from localkube.apiserver.decode.yaml_text import BadYaml
from localkube.apiserver.kinds import Kind, Subresource
from localkube.apiserver.schema.load import definition_names
from localkube.apiserver.schema.strictness import AsWritten, duplicate_field
from localkube.apiserver.status import ApiError

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = (JSON, YAML, PROTOBUF)
_SHOWN = 30  # bytes of a refused body
_MOST_REPEATED = 100  # keys that one refusal or warning names
_NAMELESS = (
    "struct { "
    r'APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_PLAIN = AsWritten()
_SCHEME = "pkg/runtime/scheme.go:111"


def read_object(body: bytes, content_type: str, kind: Kind | Subresource) -> Obj:
    """`kind`: what the endpoint takes. apiVersion and kind are filled in if they are missing."""
    return _read(body, content_type, kind, looks_twice=False)[0]


def read_strictly(
    body: bytes, content_type: str, kind: Kind | Subresource
) -> tuple[Obj, AsWritten]:
    """read_object, and what strict decoding must know of the text."""
    return _read(body, content_type, kind, looks_twice=True)


def _read(
    body: bytes, content_type: str, kind: Kind | Subresource, *, looks_twice: bool
) -> tuple[Obj, AsWritten]:
    media = _media(content_type)
    if media == PROTOBUF:
        return _from_protobuf(body, kind), _PLAIN
    written = _PLAIN
    try:
        if media == JSON:
            obj = json_text.parse(body)
            if looks_twice:
                written = _json_as_written(body, obj)
                if written.keys:
                    obj = json_text.merged(body)
        else:
            obj, repeated = yaml_text.parse(body)
            written = AsWritten(_yaml_repeats(repeated), in_order=False)
    except BadJson as error:
        raise _no_type(kind, str(error), body) from error
    except BadYaml as error:
        raise _unrecognized(kind, str(error), body) from error
    if type(obj) is not dict:
        if obj is not None or _custom(kind):
            raise _not_an_object(kind, obj, body)
        obj = {}
    _identify(obj, kind, body)
    return obj, written


def read_any(body: bytes, content_type: str) -> Obj:
    """Empty for an empty body."""
    if not body:
        return {}
    media = _media(content_type)
    try:
        if media == PROTOBUF:
            return _any_protobuf(body)
        obj = json_text.parse(body) if media == JSON else yaml_text.parse(body).value
    except (BadJson, BadYaml, BadProtobuf) as error:
        raise status.bad_request(str(error)) from error
    if obj is not None and type(obj) is not dict:
        raise status.bad_request(_cannot(obj, "map[string]interface {}"))
    return obj or {}


def read_yaml(body: bytes) -> Obj:
    """JSON is YAML too, and what clients really send."""
    try:
        obj = _json_or_yaml(body)
    except BadYaml as error:
        raise _bad_applied(f"error converting YAML to JSON: {error}") from error
    if type(obj) is not dict:
        why = _cannot(obj, "map[string]interface {}")
        raise _bad_applied(f"error unmarshaling JSON: while decoding JSON: {why}")
    return obj


def _json_or_yaml(body: bytes) -> Any:
    if body[:1] == b"{":
        with contextlib.suppress(BadJson):
            return json_text.parse(body)
    return yaml_text.parse(body).value


def repeated_in(patch: bytes) -> AsWritten:
    """Of a patch that was read as JSON. What it makes of the object is in no order of a text."""
    try:
        repeated = _json_as_written(patch, json_text.parse(patch)).repeated
    except BadJson:  # whoever applies it says what is wrong
        repeated = ()
    return AsWritten(repeated, in_order=False)


def _json_as_written(body: bytes, parsed: Any) -> AsWritten:
    keys = json_text.keys_in_order(body, parsed)
    if not keys:
        return _PLAIN
    repeated = dict.fromkeys(duplicate_field(key.path) for key in keys if key.again)
    return AsWritten(tuple(repeated), keys)


def _yaml_repeats(found: list[str]) -> list[str]:
    said = "\n  ".join(found[:_MOST_REPEATED])
    return [f"yaml: unmarshal errors:\n  {said}"] if found else []


def _media(content_type: str) -> str:
    media = content_type.partition(";")[0].strip().lower() or JSON
    if media not in ACCEPTED:
        raise status.unsupported_media_type(ACCEPTED)
    return media


def _from_protobuf(body: bytes, kind: Kind | Subresource) -> Obj:
    try:
        envelope = protobuf.open_envelope(body)
    except BadProtobuf as error:
        raise _unrecognized(kind, str(error), body) from error
    named: Obj = {"apiVersion": envelope.api_version, "kind": envelope.kind}
    _identify(named, kind, body)
    definition = definition_names().get((kind.group, kind.version, kind.kind), "")
    if not protobuf.is_known(definition):
        raise status.unsupported_media_type((JSON, YAML))
    try:
        return named | protobuf.decode_message(envelope.message, definition)
    except BadProtobuf as error:
        raise _unhandled(named, kind, str(error)) from error


def _any_protobuf(body: bytes) -> Obj:
    envelope = protobuf.open_envelope(body)
    group, _, version = envelope.api_version.rpartition("/")
    definition = definition_names().get((group, version, envelope.kind), "")
    if not protobuf.is_known(definition):
        raise BadProtobuf(_not_registered(envelope.kind, envelope.api_version))
    message = protobuf.decode_message(envelope.message, definition)
    return {"apiVersion": envelope.api_version, "kind": envelope.kind, **message}


def _identify(obj: Obj, kind: Kind | Subresource, body: bytes) -> None:
    wanted = f"{kind.group}/{kind.version}" if kind.group else kind.version
    api_version, name = obj.get("apiVersion"), obj.get("kind")
    if api_version == wanted and name == kind.kind:
        return
    for field, given in (("apiVersion", api_version), ("kind", name)):
        if given is not None and type(given) is not str:
            raise _no_type(kind, _cannot(given, "string", f".{field}"), body)
    if _custom(kind):
        _identify_custom(obj, kind, wanted, body)
        return
    if api_version and api_version.count("/") > 1:
        why = f"unexpected GroupVersion string: {api_version}"
        raise _unrecognized(kind, why, body)
    obj["apiVersion"], obj["kind"] = api_version or wanted, name or kind.kind
    if (obj["apiVersion"], obj["kind"]) != (wanted, kind.kind):
        raise _other_kind(obj, kind, wanted)


def _identify_custom(obj: Obj, kind: Kind | Subresource, wanted: str, body: bytes) -> None:
    name, api_version = obj.get("kind"), obj.get("apiVersion") or ""
    if not name:
        text = body.decode("utf-8", "replace")
        raise _unrecognized(kind, f"Object 'Kind' is missing in '{text}'", body)
    if api_version != wanted:
        raise _other_version(api_version, wanted)
    metadata = obj.get("metadata")
    named = metadata.get("name") if isinstance(metadata, dict) else ""
    errors = [status.invalid_value("kind", name, f"must be {kind.kind}")]
    raise status.invalid(name, kind.group, str(named or ""), errors)


def _other_kind(obj: Obj, kind: Kind | Subresource, wanted: str) -> ApiError:
    api_version, name = obj["apiVersion"], obj["kind"]
    group, _, version = api_version.rpartition("/")
    if (group, version, name) not in definition_names():
        return _unhandled(obj, kind, _not_registered(name, api_version))
    if name == kind.kind and (group == kind.group or name == "Event"):
        return _other_version(api_version, wanted)
    # The package of Kubernetes' internal types: core, apps, rbac, ...
    package = kind.group.partition(".")[0] or "core"
    why = f"converting ({version}.{name}) to ({package}.{kind.kind}): unknown conversion"
    return _unhandled(obj, kind, why)


def _not_registered(name: str, api_version: str) -> str:
    return f'no kind "{name}" is registered for version "{api_version}" in scheme "{_SCHEME}"'


def _other_version(given: str, wanted: str) -> ApiError:
    return status.bad_request(
        f"the API version in the data ({given}) does not match the expected API version ({wanted})"
    )


def _unhandled(obj: Obj, kind: Kind | Subresource, why: str) -> ApiError:
    version = obj["apiVersion"].rpartition("/")[2]
    return status.bad_request(
        f'{obj["kind"]} in version "{version}" cannot be handled as a {kind.kind}: {why}'
    )


def _not_an_object(kind: Kind | Subresource, value: Any, body: bytes) -> ApiError:
    if value is None:
        return _unrecognized(kind, "Object 'Kind' is missing in 'null'", body)
    return _no_type(kind, _cannot(value, _NAMELESS), body)


def _no_type(kind: Kind | Subresource, why: str, body: bytes) -> ApiError:
    return _unrecognized(kind, f"couldn't get version/kind; json parse error: {why}", body)


def _unrecognized(kind: Kind | Subresource, why: str, body: bytes) -> ApiError:
    return status.bad_request(
        f"the object provided is unrecognized (must be of type {kind.kind}): {why} ({_shown(body)})"
    )


def _bad_applied(why: str) -> ApiError:
    return status.bad_request(f"error decoding YAML: {why}")


def _shown(body: bytes) -> str:
    if not body:
        return "<empty>"
    start, rest = body[:_SHOWN], " ..." if len(body) > _SHOWN else ""
    return (start.decode("utf-8", "replace") if body[:1] == b"{" else start.hex()) + rest


def _cannot(value: Any, wanted: str, field: str = "") -> str:
    names = {str: "string", list: "array", dict: "object", bool: "bool", type(None): "null"}
    found = names.get(type(value), "number")
    into = f"Go struct field {field}" if field else "Go value"
    return f"json: cannot unmarshal {found} into {into} of type {wanted}"


def _custom(kind: Kind | Subresource) -> bool:
    return isinstance(kind, Kind) and kind.custom
