"""ResourceQuota: what a namespace has used, exactly, and whether there is room for more.

The ledger hears of every change of the store at once and keeps sums only for namespaces that have
quotas. Nothing waits between `check` and the store's write, so two creates at the same time cannot
both take the last place; and what is deleted or done is free again at once.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from kubeclient.objects import Obj
from kubeclient.quantity import Format, Quantity, of_nanos, parse
from kubeclient.turns import Turns
from localkube.apiserver.admission.attributes import (
    Attributes,
    Operation,
    refusal,
)
from localkube.apiserver.admission.quota_usage import (
    Usage,
    is_terminating,
    matches_scopes,
    missing_requirements,
    usage_of,
)

log = logging.getLogger(__name__)

QUOTAS = "resourcequotas"
_DELETED = "DELETED"
_ZERO = of_nanos(0)
_MOST_PREPARED = 16
_COUNTED_ON_UPDATE = frozenset({"services", "persistentvolumeclaims"})


class QuotaRecord(Protocol):
    @property
    def resource(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...

    def obj(self) -> Obj: ...


class Event(Protocol):
    """`previous` gave way to `record`; when DELETED, to nothing."""

    @property
    def type(self) -> str: ...
    @property
    def record(self) -> QuotaRecord: ...
    @property
    def previous(self) -> QuotaRecord | None: ...


class Records(Protocol):
    def records(self, resource: str, namespace: str | None = None) -> Sequence[QuotaRecord]: ...

    def resources_in(self, namespace: str) -> Iterator[str]: ...


class _Account:
    """One quota: its limits, what each object was charged, and the sums."""

    __slots__ = ("_charged", "_sums", "hard", "quota")

    def __init__(self, quota: Obj) -> None:
        self.quota = quota
        self.hard: dict[str, Quantity] = {
            name: parse(text) for name, text in (quota["spec"].get("hard") or {}).items()
        }
        self._sums: dict[str, tuple[int, Format]] = {}
        self._charged: dict[tuple[str, str], tuple[QuotaRecord, Usage]] = {}

    def used(self, name: str) -> Quantity:
        found = self._sums.get(name)
        return of_nanos(*found) if found else _ZERO

    def has(self, record: QuotaRecord) -> bool:
        """This very state of the object."""
        found = self._charged.get((record.resource, record.name))
        return found is not None and found[0] is record

    def put(self, record: QuotaRecord, thing: Obj, usage: Usage) -> None:
        charge = usage if matches_scopes(self.quota, record.resource, thing) else {}
        # Kept, because usage depends on the clock as well (a pod is free after its grace period):
        # `take` has to subtract exactly what was added here.
        self._charged[record.resource, record.name] = record, charge
        self._add(charge, 1)

    def take(self, resource: str, name: str) -> None:
        charged = self._charged.pop((resource, name), None)
        if charged is not None:
            self._add(charged[1], -1)

    def keep_only(self, there: set[tuple[str, str]]) -> None:
        for key in self._charged.keys() - there:
            self.take(*key)

    def status(self) -> Obj:
        return {
            "hard": dict(self.quota["spec"].get("hard") or {}),
            "used": {name: self.used(name).text for name in self.hard},
        }

    def _add(self, usage: Mapping[str, Quantity], sign: int) -> None:
        for name, amount in usage.items():
            if name in self.hard:
                nanos, form = self._sums.get(name) or (0, amount.format)
                # A zero has no format of its own: it takes that of what is added to it.
                self._sums[name] = nanos + sign * amount.nanos, form if nanos else amount.format


class QuotaLedger:
    def __init__(self, store: Records, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._books: dict[str, dict[str, _Account]] = {}  # by namespace and name, in order
        self._changed: set[str] = set()
        self._prepared: dict[tuple[str, str], _Account] = {}
        for record in sorted(store.records(QUOTAS), key=lambda each: (each.namespace, each.name)):
            account = _understood(record.obj())
            if account is not None:
                self._books.setdefault(record.namespace, {})[record.name] = account
        self._changed.update(self._books)
        for namespace, book in self._books.items():  # each is read once, for all of its quotas
            for record in self._records_of(namespace):
                _count(book.values(), record, clock())

    def on_change(self, event: Event) -> None:
        """To be called with every change of the store, before anything else reads it."""
        record = event.record
        if record.resource == QUOTAS and _spec_changed(event):
            self._close(record)
            if event.type != _DELETED:
                self._open(record)
        book = self._books.get(record.namespace)
        if book is None:
            return
        for account in book.values():
            account.take(record.resource, record.name)
        if event.type != _DELETED:
            _count(book.values(), record, self._clock())
        self._changed.add(record.namespace)

    async def prepare(self, quota: Obj) -> None:
        """Counts the namespace of a quota that will be stored next, in turns, so that what is left
        then is what changes meanwhile: ten thousand pods took most of a second."""
        namespace, account = quota["metadata"]["namespace"], _understood(quota)
        if account is None:
            return
        turns, now_s = Turns(), self._clock()
        for record in self._records_of(namespace):
            _count([account], record, now_s)
            await turns.next()
        while len(self._prepared) >= _MOST_PREPARED:  # they are left by writes that failed
            del self._prepared[next(iter(self._prepared))]
        self._prepared[namespace, quota["metadata"]["name"]] = account

    def check(self, attributes: Attributes) -> None:
        """Raises when a quota has no room for the write. Call it last before the store."""
        book = self._books.get(attributes.namespace)
        if book is None or attributes.obj is None or not _counts(attributes):
            return
        resource, new, old = attributes.kind.resource, attributes.obj, attributes.old
        usage = usage_of(resource, new, self._clock())
        before = usage_of(resource, old, self._clock()) if old is not None else {}
        for account in book.values():
            if not matches_scopes(account.quota, resource, new):
                continue
            missing = missing_requirements(account.quota, resource, new)
            name = account.quota["metadata"]["name"]
            if missing:
                raise refusal(attributes, f"failed quota: {name}: {missing}")
            counted = old is not None and matches_scopes(account.quota, resource, old)
            why = _exceeded(account, usage, before if counted else {})
            if why:
                raise refusal(attributes, f"exceeded quota: {name}, {why}")

    def changed_statuses(self) -> list[tuple[str, str, Obj]]:
        """(namespace, name, status) of quotas whose usage may have changed since the last call."""
        changed, self._changed = self._changed, set()
        return [
            (namespace, account.quota["metadata"]["name"], account.status())
            for namespace in sorted(changed)
            if namespace in self._books
            for account in self._books[namespace].values()
        ]

    def _close(self, quota: QuotaRecord) -> None:
        book = self._books.get(quota.namespace, {})
        book.pop(quota.name, None)
        if not book:
            self._books.pop(quota.namespace, None)
        self._changed.add(quota.namespace)

    def _open(self, quota: QuotaRecord) -> None:
        """Counts what was not counted before for this very quota."""
        account = self._begun(quota)
        if account is None:
            return
        now_s, there = self._clock(), set()
        for record in self._records_of(quota.namespace):
            there.add((record.resource, record.name))
            if not account.has(record):
                account.take(record.resource, record.name)
                _count([account], record, now_s)
        account.keep_only(there)
        book = self._books.get(quota.namespace, {}) | {quota.name: account}
        self._books[quota.namespace] = dict(sorted(book.items()))
        self._changed.add(quota.namespace)

    def _records_of(self, namespace: str) -> Iterator[QuotaRecord]:
        for resource in list(self._store.resources_in(namespace)):
            yield from list(self._store.records(resource, namespace))

    def _begun(self, quota: QuotaRecord) -> _Account | None:
        thing = quota.obj()
        prepared = self._prepared.pop((quota.namespace, quota.name), None)
        if prepared is not None and prepared.quota["spec"] == thing["spec"]:
            return prepared
        return _understood(thing)


def _understood(quota: Obj) -> _Account | None:
    try:
        return _Account(quota)
    except Exception:  # it limits nothing; the others of its namespace do
        log.exception("quota not understood", extra={"object": quota["metadata"]["name"]})
        return None


def _count(accounts: Iterable[_Account], record: QuotaRecord, now_s: float) -> None:
    try:
        thing = record.obj()
        usage = usage_of(record.resource, thing, now_s)
        for account in accounts:
            account.put(record, thing, usage)
    except Exception:  # it counts as nothing; all others count
        where = f"{record.resource} {record.namespace}/{record.name}"
        log.exception("object not understood", extra={"object": where})


def _spec_changed(event: Event) -> bool:
    if event.type == _DELETED or event.previous is None:
        return True
    # A new status needs no recount. It is written after every change of what is used.
    return bool(event.record.obj().get("spec") != event.previous.obj().get("spec"))


def _counts(attributes: Attributes) -> bool:
    """Whether a write of this sort can change what is used."""
    if attributes.subresource:
        return attributes.subresource == "resize"
    if attributes.operation is not Operation.UPDATE:
        return attributes.operation is Operation.CREATE
    if attributes.kind.resource == "pods":
        new, old = attributes.obj, attributes.old
        return new is not None and old is not None and is_terminating(new) != is_terminating(old)
    return attributes.kind.resource in _COUNTED_ON_UPDATE


def _exceeded(account: _Account, usage: Usage, before: Usage) -> str:
    over: dict[str, tuple[Quantity, Quantity, Quantity]] = {}
    for name in sorted(usage.keys() & account.hard):
        more = usage[name].nanos - before.get(name, _ZERO).nanos
        used, hard = account.used(name), account.hard[name]
        if more > 0 and used.nanos + more > hard.nanos:
            over[name] = of_nanos(more, usage[name].format), used, hard
    if not over:
        return ""
    requested, used_texts, limited = (
        ",".join(f"{name}={parts[i]}" for name, parts in over.items()) for i in range(3)
    )
    return f"requested: {requested}, used: {used_texts}, limited: {limited}"
