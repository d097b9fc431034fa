"""ConversionReview: what a conversion webhook is asked, and what its answer may say. Pure.

Refused         the answer cannot be used; says why in Kubernetes' words
"""

from collections.abc import Sequence
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.status import FieldError
from localkube.apiserver.validation.metadata import annotations, labels

_KNOWN_VERSIONS = ("v1", "v1beta1")
_GROUP = "apiextensions.k8s.io"
# The only metadata that a conversion may change.
_CHANGEABLE = {"labels": "metadata.labels", "annotations": "metadata.annotation"}
_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


class Refused(Exception):
    pass


def review_version(accepted: Sequence[str]) -> str | None:
    """The first version that the webhook accepts and we know."""
    return next((version for version in accepted if version in _KNOWN_VERSIONS), None)


def review(version: str, uid: str, objects: Sequence[Obj], desired: str) -> Obj:
    return {
        "kind": "ConversionReview",
        "apiVersion": f"{_GROUP}/{version}",
        "request": {"uid": uid, "desiredAPIVersion": desired, "objects": list(objects)},
        # Webhooks in Go may write into it without looking whether it is there.
        "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
    }


def converted_objects(answer: Any, version: str, uid: str) -> list[Any]:
    """What the webhook returned, if it says that all went well. Raises Refused."""
    answer = answer if isinstance(answer, dict) else {}
    if version == "v1":
        found = f"{answer.get('apiVersion', '')}, Kind={answer.get('kind', '')}"
        wanted = f"{_GROUP}/v1, Kind=ConversionReview"
        if found != wanted:
            raise Refused(f"expected webhook response of {wanted}, got {found}")
    response = answer.get("response")
    if not isinstance(response, dict):
        raise Refused("no response provided")
    if version == "v1" and response.get("uid") != uid:
        raise Refused(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    result = response.get("result")
    result = result if isinstance(result, dict) else {}
    if result.get("status") != "Success":
        status = result.get("status", "")
        failed = f"response.result.status was '{status}', not 'Success'"
        raise Refused(str(result.get("message") or failed))
    objects = response.get("convertedObjects")
    return objects if isinstance(objects, list) else []


def restored(original: Obj, converted: Any, desired: str, place: int) -> Obj:
    """The converted object with the metadata that no webhook may change. Raises Refused."""
    if not isinstance(converted, dict) or not converted.get("kind"):
        why = "Object 'Kind' is missing"
        raise Refused(f"returned invalid object at index {place}: {why}")
    for found, wanted, what in (
        (converted.get("apiVersion", ""), desired, "groupVersion"),
        (converted["kind"], original["kind"], "kind"),
    ):
        if found != wanted:
            why = f"invalid {what} (expected {wanted}, received {found})"
            raise Refused(f"returned invalid object at index {place}: {why}")
    metadata = converted.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    for key, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = original["metadata"].get(key, ""), given.get(key, "")
        if before != after:
            why = f"must have the same {shown}: {before} != {after}"
            raise Refused(f"returned invalid object: {why}")
    try:
        return {**converted, "metadata": _metadata(original["metadata"], metadata)}
    except _BadMetadata as error:
        raise Refused(f"returned invalid metadata: {error}") from None


class _BadMetadata(Exception):
    pass


def _metadata(original: Obj, converted: Any) -> Obj:
    if converted is None:
        raise _BadMetadata("missing metadata in converted object")
    if not isinstance(converted, dict):
        raise _BadMetadata(f"invalid metadata of type {_go_type(converted)} in converted object")
    kept = {key: value for key, value in original.items() if key not in _CHANGEABLE}
    for key, path in _CHANGEABLE.items():
        values = converted.get(key)
        if values is None:
            continue
        _check_texts(key, values)
        if values != original.get(key):
            errors: list[FieldError] = []
            (labels if key == "labels" else annotations)(errors, values, path)
            if errors:
                raise _BadMetadata(_aggregate(errors))
        kept[key] = values
    return kept


def _check_texts(key: str, values: Any) -> None:
    if not isinstance(values, dict):
        found = _go_type(values)
        raise _BadMetadata(f"invalid metadata.{key} of type {found} in converted object")
    for name, value in values.items():
        if not isinstance(value, str):
            found = _go_type(value)
            what = f"must be a string, but is {found} in converted object"
            raise _BadMetadata(f"metadata.{key}[{name}] {what}")


def _aggregate(errors: Sequence[FieldError]) -> str:
    distinct = list(dict.fromkeys(f"{error.field}: {error.message}" for error in errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _go_type(value: Any) -> str:
    return _GO_TYPES.get(type(value), type(value).__name__)
