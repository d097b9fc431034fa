"""Refusals of strategic merge patches, in Kubernetes' words and with its codes."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.patch import go_text
from localkube.apiserver.status import ApiError, failure


def wrong(message: str) -> ApiError:
    """Most wrong directives are a 500 without a reason to a real server."""
    return failure(500, "", message)


def bad_directive(directive: Any, patch: Obj) -> ApiError:
    shown = go_text.plain(directive)
    return wrong(f"unknown patch type: {shown} in map: {go_text.plain(patch)}")


def bad_type(wanted: str, found: Any) -> ApiError:
    return wrong(f"expected a {wanted}, but received a {go_text.type_name(found)}")


def no_merge_key(item: Obj, key: str) -> ApiError:
    return wrong(f"map: {go_text.plain(item)} does not contain declared merge key: {key}")


def no_key() -> ApiError:
    return wrong("cannot merge lists without merge key for struct")


def unknown_field(struct: str, name: str) -> ApiError:
    return wrong(
        f"unable to find api field in struct {struct} for the json field {go_text.quoted(name)}"
    )
