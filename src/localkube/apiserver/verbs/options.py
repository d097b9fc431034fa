"""The options that come with a request, read and checked in Kubernetes' words."""

import re
from typing import Literal, NamedTuple

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.patch.managed_fields import manager_name
from localkube.apiserver.request import Request
from localkube.apiserver.security.access import quoted
from localkube.apiserver.status import FieldError

FieldValidation = Literal["Strict", "Warn", "Ignore"]
_MANAGER_LIMIT = 128
_POLICIES = ("Foreground", "Background", "Orphan")


class WriteOptions(NamedTuple):
    dry_run: bool
    manager: str  # of fields: asked for, or taken from the client's name
    manager_given: bool
    validation: FieldValidation
    force: bool | None  # for apply only; None: not said


def write_options(request: Request, kind: str) -> WriteOptions:
    """`kind`: CreateOptions, UpdateOptions, PatchOptions."""
    if not request.query_string:
        return WriteOptions(False, _manager(request, ""), False, "Warn", None)
    errors: list[FieldError] = []
    dry_run = _dry_run(request.query.get("dryRun", []), errors)
    given = request.text("fieldManager")
    if len(given) > _MANAGER_LIMIT:
        errors.append(status.too_long("fieldManager", _MANAGER_LIMIT))
    elif not given.isprintable():
        errors.append(
            status.invalid_value("fieldManager", given, "should only contain printable characters")
        )
    validation = request.text("fieldValidation") or "Warn"
    if validation not in ("Strict", "Warn", "Ignore"):
        errors.append(
            status.not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn"))
        )
    if errors:
        raise status.invalid(kind, "meta.k8s.io", "", errors)
    checked: FieldValidation = validation  # type: ignore[assignment]  # one of the three: above
    force = request.flag("force") if "force" in request.query else None
    return WriteOptions(dry_run, _manager(request, given), bool(given), checked, force)


def _manager(request: Request, given: str) -> str:
    return manager_name(given, request.headers.get("user-agent", ""))


def _dry_run(values: list[str], errors: list[FieldError]) -> bool:
    wanted = [value for value in values if value]
    if any(value != "All" for value in wanted):
        errors.append(status.not_supported("dryRun", wanted, ("All",)))
    return bool(wanted)


class DeleteOptions(NamedTuple):
    dry_run: bool
    grace_s: int | None
    policy: str  # "", Background, Foreground, Orphan
    uid: str
    resource_version: str


def delete_options(request: Request, body: Obj) -> DeleteOptions:
    """From the body; what the body leaves out, from the query."""
    errors: list[FieldError] = []
    dry_run = _dry_run(body.get("dryRun") or request.query.get("dryRun", []), errors)
    policy = str(body.get("propagationPolicy") or request.text("propagationPolicy"))
    orphan = body.get("orphanDependents")
    if orphan is None and "orphanDependents" in request.query:
        orphan = request.flag("orphanDependents")
    if policy and orphan is not None:
        errors.append(
            status.invalid_value(
                "propagationPolicy",
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    if policy and policy not in _POLICIES:
        errors.append(status.not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if errors:
        raise status.invalid("DeleteOptions", "meta.k8s.io", "", errors)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(
        dry_run,
        _grace(request, body),
        policy,
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
    )


def _grace(request: Request, body: Obj) -> int | None:
    given = body.get("gracePeriodSeconds")
    if given is None and "gracePeriodSeconds" in request.query:
        given = request.text("gracePeriodSeconds")
    if given is None:
        return None
    if isinstance(given, str):
        given = _parsed(given)
    return 1 if given < 0 else int(given)  # a negative period means: as soon as can be


class ListOptions(NamedTuple):
    label_selector: str
    field_selector: str
    limit: int
    continue_token: str
    resource_version: str
    resource_version_match: str
    watch: bool
    bookmarks: bool
    send_initial: bool | None  # None: not said
    timeout_s: float | None


def list_options(request: Request) -> ListOptions:
    options = ListOptions(
        label_selector=request.text("labelSelector"),
        field_selector=request.text("fieldSelector"),
        limit=_whole(request, "limit") or 0,
        continue_token=request.text("continue"),
        resource_version=request.text("resourceVersion"),
        resource_version_match=request.text("resourceVersionMatch"),
        watch=request.flag("watch"),
        bookmarks=request.flag("allowWatchBookmarks"),
        send_initial=(
            request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
        ),
        timeout_s=_whole(request, "timeoutSeconds"),
    )
    errors = _combination_errors(options, options.send_initial is not None)
    if errors:
        raise status.invalid("ListOptions", "meta.k8s.io", "", errors)
    return options


def _whole(request: Request, key: str) -> int | None:
    text = request.text(key)
    return _parsed(text) if text else None


_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)


def _parsed(text: str) -> int:
    """As Go reads an int64."""
    why = "" if _WHOLE.fullmatch(text) else "invalid syntax"
    if not why and (len(text) > 20 or not -(2**63) <= int(text) < 2**63):
        why = "value out of range"
    if why:
        raise status.bad_request(f"strconv.ParseInt: parsing {quoted(text)}: {why}")
    return int(text)


def _combination_errors(options: ListOptions, initial_given: bool) -> list[FieldError]:
    match = options.resource_version_match
    if options.watch:
        return _watch_errors(options, initial_given)
    if initial_given:
        text = "sendInitialEvents is forbidden for list"
        initial = status.forbidden_field("sendInitialEvents", text)
        return [*_match_errors(options, match), initial]
    return _match_errors(options, match)


def _match_errors(options: ListOptions, match: str) -> list[FieldError]:
    field = "resourceVersionMatch"
    if not match:
        return []
    if not options.resource_version:
        text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        return [status.forbidden_field(field, text)]
    if options.continue_token:
        return [status.forbidden_field(field, "resourceVersionMatch is forbidden for continue")]
    if match not in ("Exact", "NotOlderThan"):
        return [status.not_supported(field, match, ("Exact", "NotOlderThan", ""))]
    if match == "Exact" and options.resource_version == "0":
        text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        return [status.forbidden_field(field, text)]
    return []


def _watch_errors(options: ListOptions, initial_given: bool) -> list[FieldError]:
    match, field = options.resource_version_match, "resourceVersionMatch"
    if initial_given:
        if not match:
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            return [status.forbidden_field(field, text)]
        if match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            return [status.forbidden_field(field, text)]
        return []
    if match:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        return [status.forbidden_field(field, text)]
    return []
