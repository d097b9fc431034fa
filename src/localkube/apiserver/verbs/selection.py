"""Which records a list or watch is about: namespace, label selector, field selector."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from kubeclient.selectors import (
    FieldRequirement,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from kubeclient.turns import Turns
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.kinds import Kind
from localkube.apiserver.routing import Target
from localkube.apiserver.security.limits import Limits
from localkube.apiserver.store.record import Record, field_value
from localkube.apiserver.store.store import Store
from localkube.apiserver.verbs.options import ListOptions

_SELECTOR_BYTES = Limits().selector_bytes
_SLICE = 64  # records that are compared with a selector, of which some have hundreds of terms

Matches = Callable[[Record], bool]


def selection(api: Api, target: Target, options: ListOptions) -> Matches | None:
    """None: everything. Raises ApiError 400 for selectors that cannot be understood."""
    tests: list[Matches] = []
    if target.namespace:
        tests.append(_in_namespace(target.namespace))
    name = target.name  # an old way to watch one object: GET .../pods/x?watch=true
    if name:
        tests.append(lambda record: record.name == name)
    if len(options.label_selector) + len(options.field_selector) > _SELECTOR_BYTES:
        text = f"selectors must not be longer than {_SELECTOR_BYTES} bytes"
        raise status.bad_request(text)
    try:
        if options.label_selector:
            labels = parse_label_selector(options.label_selector)
            tests.append(lambda record: labels.matches(record.labels))
        if options.field_selector:
            for requirement in parse_field_selector(options.field_selector):
                tests.append(_field_test(api, target.kind, requirement))
    except SelectorError as error:
        raise status.bad_request(str(error)) from error
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda record: all(test(record) for test in tests)


def select(store: Store, target: Target, options: ListOptions) -> Sequence[Record]:
    """Those that may match, as they are now."""
    node = _node_asked_for(target.kind, options.field_selector)
    if node is not None:
        return store.pods_on(node)
    return store.records(target.kind.resource, target.namespace or None)


def is_chosen_by_store(target: Target, options: ListOptions) -> bool:
    """Whether all that the store selects matches: nothing but a namespace was asked for."""
    return not (options.label_selector or options.field_selector or target.name)


async def matching(records: Sequence[Record], matches: Matches | None) -> Sequence[Record]:
    """Records never change, so that others may write meanwhile."""
    if matches is None:
        return records
    turns, found = Turns(), list[Record]()
    for start in range(0, len(records), _SLICE):
        found += [record for record in records[start : start + _SLICE] if matches(record)]
        await turns.next()
    return found


@lru_cache(maxsize=1024)
def _node_asked_for(kind: Kind, field_selector: str) -> str | None:
    if kind.resource != "pods" or "spec.nodeName" not in field_selector:
        return None
    for requirement in parse_field_selector(field_selector):
        if requirement.path == "spec.nodeName" and requirement.equal:
            return requirement.value
    return None


def _in_namespace(namespace: str) -> Matches:
    return lambda record: record.namespace == namespace


def _field_test(api: Api, kind: Kind, requirement: FieldRequirement) -> Matches:
    path, equal, value = requirement.path, requirement.equal, requirement.value
    if path == "metadata.name":
        return lambda record: (record.name == value) is equal
    if path == "metadata.namespace" and kind.namespaced:
        return lambda record: (record.namespace == value) is equal
    if path not in kind.selectable:
        raise status.bad_request(_unknown_field(kind, path))
    if api.conversions.has_webhook(kind) and kind.version != kind.storage_version:
        # The store compares before the webhook is asked.
        stored = f"{kind.group}/{kind.storage_version}"
        why = f"the objects are stored in {stored} and converted by a webhook: select there"
        raise status.bad_request(f"field label not supported in {kind.api_version}: {path}; {why}")
    if kind.custom:  # what is kept beside a record was chosen by an older CRD, perhaps
        return lambda record: (field_value(record.obj(), path) == value) is equal
    place = api.store.selectable(kind.resource).index(_STORED_EVENT_FIELDS.get(path, path))
    return lambda record: (record.fields[place] == value) is equal


def _unknown_field(kind: Kind, path: str) -> str:
    if kind.selectable or kind.custom:
        return f"field label not supported: {path}"
    known = '"metadata.name", "metadata.namespace"'
    return f'"{path}" is not a known field selector: only {known}'


# The fields of core events that those of events.k8s.io are stored as.
_STORED_EVENT_FIELDS = {"reportingController": "reportingComponent"} | {
    f"regarding.{part}": f"involvedObject.{part}"
    for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
}
