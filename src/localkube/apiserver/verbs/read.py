"""get and list."""

import base64
import contextlib
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import orjson

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.decode.json_text import BadJson, parse
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.security.limits import Limits
from localkube.apiserver.store.record import Record
from localkube.apiserver.store.store import NotWritten
from localkube.apiserver.verbs.options import ListOptions
from localkube.apiserver.verbs.representation import answer_one, answer_records
from localkube.apiserver.verbs.selection import (
    is_chosen_by_store,
    matching,
    select,
    selection,
)

PAGE_ITEMS = Limits().page_items
_LOOKS = 5  # at what the disk refuses again and again


def existing(api: Api, target: Target) -> Record:
    record = api.store.get(target.kind.resource, target.namespace, target.name)
    if record is None:
        raise status.not_found(target.kind, target.name)
    return record


async def get(api: Api, request: Request, target: Target) -> Answer:
    version = request.text("resourceVersion")
    if version:
        _check_version(api, version)
    kind, store = target.kind, api.store

    def present() -> tuple[Record | None, int]:
        record = store.get(kind.resource, target.namespace, target.name)
        # Absence has no version: the reason may be a deletion that is not committed yet, so wait
        # for all.
        return record, record.rv if record else store.version

    record = await settled(api, present)
    if record is None:
        raise status.not_found(kind, target.name)
    record = await api.conversions.served_one(record, kind)
    return await answer_one(api, request, kind, record)


T = TypeVar("T")


async def settled(api: Api, look: Callable[[], tuple[T, int]]) -> T:
    """What `look` sees, returned once the disk has every change up to the version that it names.

    Memory is ahead of the disk by the changes that are being committed. Showing them earlier would
    show a state that is undone when the disk refuses it. In that case `look` is called again.
    """
    for _ in range(_LOOKS):
        found, version = look()
        with contextlib.suppress(NotWritten):
            await api.store.settled(version)
            return found
    raise NotWritten("it refuses one write after the other")


async def list_(api: Api, request: Request, target: Target, options: ListOptions) -> Answer:
    matches = selection(api, target, options)

    def present() -> tuple[tuple[Sequence[Record], int], int]:
        found = _found(api, target, options)
        return found, api.store.version

    records, version = await settled(api, present)
    if not is_chosen_by_store(target, options):
        records = await matching(records, matches)
    return await _answer_page(api, request, target, options, (records, version))


def _found(api: Api, target: Target, options: ListOptions) -> tuple[Sequence[Record], int]:
    """Those that may match, from where the page begins, and at which version."""
    page, version = _Page("", "", 0), api.store.version
    if options.continue_token:
        if options.resource_version:
            text = "specifying resource version is not allowed when using continue"
            raise status.bad_request(text)
        page = _decode_token(options.continue_token)
        if page.rv > api.store.version:
            why = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
            raise status.bad_request(f"{_BAD_TOKEN}: {why}")
        # Later pages show what the first one would have shown, had it been longer.
        version = page.rv
    elif options.resource_version:
        _check_version(api, options.resource_version)
        if options.resource_version_match == "Exact":
            version = int(options.resource_version)
    records = _records_at(api, target, options, version)
    if options.continue_token:
        start = (page.namespace, page.name)
        records = [r for r in records if (r.namespace, r.name) > start]
    return records, version


def _records_at(api: Api, target: Target, options: ListOptions, version: int) -> Sequence[Record]:
    if version == api.store.version:
        return select(api.store, target, options)
    found = api.store.records_at(target.kind.resource, target.namespace or None, version)
    if found is None:
        if options.continue_token:
            raise status.gone(_TOKEN_EXPIRED)
        raise status.gone(f"The resourceVersion for the provided list is too old: {version}")
    return found


async def _answer_page(
    api: Api,
    request: Request,
    target: Target,
    options: ListOptions,
    found: tuple[Sequence[Record], int],
) -> Answer:
    records, version = found
    metadata: Obj = {"resourceVersion": str(version)}
    # From its cache, which version 0 asks for, a real server answers with everything.
    limit = 0 if options.resource_version == "0" else min(options.limit, PAGE_ITEMS)
    if 0 < limit < len(records):
        left = len(records) - limit
        records = records[:limit]
        last = records[-1]
        metadata["continue"] = _encode_token(_Page(last.namespace, last.name, version))
        # As in Kubernetes, where the number of matching objects beyond the page is unknown.
        if not (options.label_selector or options.field_selector):
            metadata["remainingItemCount"] = left
    records = await api.conversions.served(records, target.kind)
    return await answer_records(api, request, target.kind, records, metadata)


_MOST_DIGITS = 1000
_NOT_BASE64 = re.compile(r"[^\w-]", re.ASCII)
_BAD_TOKEN = "invalid continue token: continue key is not valid"
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
    # Tokens of kube-apiserver have no padding either.
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _first_bad_byte(token: str) -> int:
    """Where Go stops reading: at what is no base64, or at the group that the end cuts off."""
    strange = _NOT_BASE64.search(token)
    return strange.start() if strange else len(token) - len(token) % 4


def _decode_token(token: str) -> _Page:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        parsed = parse(raw)
        namespace, name = parsed["start"]
        page = _Page(namespace, name, parsed["rv"])
        if not (isinstance(namespace, str) and isinstance(name, str) and type(page.rv) is int):
            raise TypeError
        return page
    except BadJson as error:
        why = str(error)
    except ValueError:
        why = f"illegal base64 data at input byte {_first_bad_byte(token)}"
    except (KeyError, TypeError):
        why = "encoded start key empty (version meta.k8s.io/v1)"
    raise status.bad_request(f"{_BAD_TOKEN}: {why}")


def parse_version(text: str) -> int:
    """Raises ValueError with Go's words."""
    # int() refuses thousands of digits, in words of its own.
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if not is_number or int(text) >= 2**64:
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
    if version > api.store.version:
        raise too_large_version(version, api.store.version)


def too_large_version(version: int, current: int) -> status.ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return status.failure(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {version}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        headers=(("Retry-After", "1"),),
    )
