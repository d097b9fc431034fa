"""get and list."""

import base64
from typing import NamedTuple

import orjson

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver import status
from gpupool.localcluster.apiserver.api import Api
from gpupool.localcluster.apiserver.request import Answer, Request
from gpupool.localcluster.apiserver.routing import Target
from gpupool.localcluster.apiserver.store.record import Record
from gpupool.localcluster.apiserver.verbs.options import ListOptions
from gpupool.localcluster.apiserver.verbs.representation import answer_record, answer_records
from gpupool.localcluster.apiserver.verbs.selection import select, selection


def existing(api: Api, target: Target) -> Record:
    record = api.store.get(target.kind.resource, target.namespace, target.name)
    if record is None:
        raise status.not_found(target.kind, target.name)
    return record


def get(api: Api, request: Request, target: Target) -> Answer:
    version = request.text("resourceVersion")
    if version:
        _check_version(api, version)
    return answer_record(api, request, target.kind, existing(api, target))


def list_(api: Api, request: Request, target: Target, options: ListOptions) -> Answer:
    matches = selection(target, options)
    page = _Page("", "", 0)
    if options.continue_token:
        page = _decode_token(options.continue_token)
        if page.rv < api.store.log(target.kind.resource).compacted_rv:
            raise status.gone(_TOKEN_EXPIRED)
    elif options.resource_version:
        _check_version(api, options.resource_version)
        _check_exact(api, target, options)
    records = select(api.store, target, options, matches)
    if options.continue_token:
        start = (page.namespace, page.name)
        records = [r for r in records if (r.namespace, r.name) > start]
    # Later pages repeat the first page's version: a watch from there misses nothing.
    version = page.rv or api.store.rv
    metadata: Obj = {"resourceVersion": str(version)}
    if 0 < options.limit < len(records):
        left = len(records) - options.limit
        records = records[: options.limit]
        last = records[-1]
        metadata["continue"] = _encode_token(_Page(last.namespace, last.name, version))
        if not (options.label_selector or options.field_selector):
            metadata["remainingItemCount"] = left
    return answer_records(api, request, target.kind, records, metadata)


_TOKEN_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter."
)


class _Page(NamedTuple):
    namespace: str
    name: str
    rv: int


def _encode_token(page: _Page) -> str:
    raw = orjson.dumps({"v": "meta.k8s.io/v1", "rv": page.rv, "start": [page.namespace, page.name]})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode_token(token: str) -> _Page:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        parsed = orjson.loads(raw)
        namespace, name = parsed["start"]
        return _Page(str(namespace), str(name), int(parsed["rv"]))
    except (ValueError, KeyError, TypeError) as error:
        text = "invalid continue token: continue key is not valid: wanted the token of a page"
        raise status.bad_request(text) from error


def parse_version(text: str) -> int:
    """Raises ValueError with Go's words."""
    if not text.isascii() or not text.isdigit() or int(text) >= 2**64:
        raise ValueError(
            f'resourceVersion: Invalid value: "{text}": '
            f'strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


def _check_version(api: Api, text: str) -> None:
    try:
        version = parse_version(text)
    except ValueError as error:
        raise status.bad_request(f"invalid resource version: {error}") from error
    if version > api.store.rv:
        raise too_large_version(version, api.store.rv)


def too_large_version(version: int, current: int) -> status.ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return status.failure(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {version}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        headers=(("Retry-After", "1"),),
    )


def _check_exact(api: Api, target: Target, options: ListOptions) -> None:
    """Only the present can be listed: an exact version in the past is gone unless nothing changed
    since, which the newest record of the resource tells."""
    if options.resource_version_match != "Exact":
        return
    version = int(options.resource_version)
    records = api.store.records(target.kind.resource)
    newest = max((record.rv for record in records), default=0)
    if version < max(newest, api.store.log(target.kind.resource).compacted_rv):
        raise status.gone(f"The resourceVersion for the provided list is too old: {version}")
