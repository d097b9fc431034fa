"""Who owns what: pods, replica sets and revisions belong to the owner that they name as their
controller. An owner adopts orphans that match its selector, and releases its own objects that no
longer match.

Lookups go through one label of the selector, never through all objects: an index of the mirror
finds the orphans for an owner, `Adopters` the owners for an orphan, and `Owned` keeps what a
controller has to know of the objects of each owner.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubeclient.client import STRATEGIC_PATCH
from kubeclient.errors import Conflict, NotFound, Refused
from kubeclient.mirror import Key, Mirror, controller_uid, key_of
from kubeclient.objects import Obj
from kubeclient.resources import Resource
from kubeclient.selectors import NOTHING, LabelSelector, SelectorError, from_object
from localkube.controllers.pods import controller_of, controller_reference, is_terminating
from localkube.controllers.run import Context, KeysOf

BY_CONTROLLER, _BY_LABEL = "controller", "orphans"


def add_indexes(mirror: Mirror) -> None:
    """Needed by `candidates` and `orphans`."""
    mirror.add_index(BY_CONTROLLER, lambda obj: [controller_uid(obj)])
    mirror.add_index(_BY_LABEL, _orphan_keys)


def _orphan_keys(obj: Obj) -> list[str]:
    """The keys under which owners look for this orphan: one per label, and one for owners whose
    selector has no matchLabels."""
    if controller_uid(obj):
        return []
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    labels = metadata.get("labels") or {}
    return [f"{namespace}/", *(f"{namespace}/{name}={value}" for name, value in labels.items())]


def _lookup_key(namespace: str, selector: Obj) -> str:
    """A key under which the index has every orphan that the selector can match (and others)."""
    wanted = selector.get("matchLabels") or {}
    for name in sorted(wanted):
        return f"{namespace}/{name}={wanted[name]}"
    return f"{namespace}/"


def selector_of(owner: Obj) -> LabelSelector:
    """A selector that is invalid, or that would select everything, selects nothing."""
    selector = owner["spec"].get("selector")
    try:
        compiled = from_object(_as_object(selector))
    except SelectorError:
        return NOTHING
    return NOTHING if compiled.everything else compiled


def selected_by(owner: Obj) -> Callable[[Obj], bool]:
    selector = selector_of(owner)
    return lambda obj: selector.matches(obj["metadata"].get("labels") or {})


def _as_object(selector: Obj | None) -> Obj | None:
    """The selector of a ReplicationController is a plain map of labels."""
    if selector is None or "matchLabels" in selector or "matchExpressions" in selector:
        return selector
    return {"matchLabels": selector}


def candidates(mirror: Mirror, owner: Obj) -> list[Obj]:
    """The owner's objects, and the orphans that it might adopt."""
    return mirror.by(BY_CONTROLLER, owner["metadata"]["uid"]) + orphans(mirror, owner)


def orphans(mirror: Mirror, owner: Obj) -> list[Obj]:
    selector = _as_object(owner["spec"].get("selector"))
    if not selector:
        return []
    return mirror.by(_BY_LABEL, _lookup_key(owner["metadata"].get("namespace", ""), selector))


@dataclass(frozen=True, slots=True)
class Claim:
    keep: list[Obj]
    adopt: list[Obj]
    release: list[Obj]


def judge(owner: Obj, found: Iterable[Obj], fits: Callable[[Obj], bool]) -> Claim:
    """A terminating owner neither adopts nor releases, and a terminating object is not adopted."""
    claim = Claim([], [], [])
    uid, leaving = owner["metadata"]["uid"], is_terminating(owner)
    for obj in found:
        controller = controller_uid(obj)
        if controller == uid:
            if fits(obj):
                claim.keep.append(obj)
            elif not leaving:
                claim.release.append(obj)
        elif not (controller or leaving or is_terminating(obj)) and fits(obj):
            claim.adopt.append(obj)
    return claim


@dataclass(frozen=True, slots=True)
class Ties:
    """How an owner marks its objects: with a reference, and perhaps with a finalizer."""

    resource: Resource  # of the owner
    finalizer: str = ""


async def claim(
    context: Context, owner: Obj, ties: Ties, resource: Resource, judged: Claim
) -> list[Obj]:
    """Adopts and releases as judged; returns the owner's objects."""
    own = list(judged.keep)
    if judged.adopt and await _is_still_there(context, owner, ties.resource):
        for obj in judged.adopt:
            with contextlib.suppress(NotFound):
                own.append(await _adopt(context, owner, ties, resource, obj))
    for obj in judged.release:
        await _release(context, owner, ties, resource, obj)
    return own


async def _is_still_there(context: Context, owner: Obj, resource: Resource) -> bool:
    """Asks the API server. The mirror may still show an owner that was deleted, and an orphan that
    it adopts would be garbage-collected, although its deletion asked to keep orphans."""
    metadata = owner["metadata"]
    try:
        fresh = await context.kube.get(resource, metadata["name"], metadata["namespace"])
    except NotFound:
        return False
    return fresh["metadata"]["uid"] == metadata["uid"] and not is_terminating(fresh)


async def _adopt(context: Context, owner: Obj, ties: Ties, resource: Resource, obj: Obj) -> Obj:
    change: Obj = {
        # The uid is a precondition: by now another object may have the name.
        "uid": obj["metadata"]["uid"],
        "ownerReferences": [controller_reference(owner, ties.resource)],
    }
    if ties.finalizer:
        change["finalizers"] = [ties.finalizer]
    return await _patch(context, resource, obj, change)


async def _release(context: Context, owner: Obj, ties: Ties, resource: Resource, obj: Obj) -> None:
    change: Obj = {
        "uid": obj["metadata"]["uid"],
        "ownerReferences": [{"$patch": "delete", "uid": owner["metadata"]["uid"]}],
    }
    if ties.finalizer:
        change["$deleteFromPrimitiveList/finalizers"] = [ties.finalizer]
    try:
        await _patch(context, resource, obj, change)
    except NotFound:
        pass
    except Conflict:
        raise
    except Refused as error:
        if error.code != 422:  # 422: the object has no owner any more
            raise


async def _patch(context: Context, resource: Resource, obj: Obj, change: Obj) -> Obj:
    metadata = obj["metadata"]
    path = resource.path(metadata["namespace"], metadata["name"])
    return await context.kube.patch(path, {"metadata": change}, content_type=STRATEGIC_PATCH)


class Adopters:
    """The owners of one kind, found by the labels of an orphan that they may adopt."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._by_label: dict[str, dict[Key, LabelSelector]] = {}

    def follow(self, owners: Mirror) -> None:
        owners.on_change(self._changed)

    def keys(self) -> KeysOf:
        """For a Watch: the owner that an object names, or all owners that would adopt it."""

        def keys(obj: Obj, _: Context) -> Iterable[Key]:
            owner = controller_of(obj)
            if owner is not None:
                if owner["kind"] == self._kind:
                    yield obj["metadata"].get("namespace", ""), owner["name"]
            elif not is_terminating(obj):
                yield from self._takers(obj)

        return keys

    def _takers(self, obj: Obj) -> Iterable[Key]:
        labels = obj["metadata"].get("labels") or {}
        for label in _orphan_keys(obj):
            for key, selector in self._by_label.get(label, {}).items():
                if selector.matches(labels):
                    yield key

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None:
            label, key = self._where(old)
            self._by_label.get(label, {}).pop(key, None)
            if not self._by_label.get(label, True):
                del self._by_label[label]
        if new is not None:
            label, key = self._where(new)
            self._by_label.setdefault(label, {})[key] = selector_of(new)

    def _where(self, owner: Obj) -> tuple[str, Key]:
        namespace = owner["metadata"].get("namespace", "")
        selector = _as_object(owner["spec"].get("selector")) or {}
        return _lookup_key(namespace, selector), key_of(owner)


T = TypeVar("T")


class Owned(Generic[T]):
    """Facts about the objects of each owner of one kind, updated with every change of a mirror.

    An owner of ten thousand pods is reconciled again and again. Reading all of its pods each time
    would block the event loop for everybody else.

    An object of which the fact cannot be told stops its owner alone: a ReplicaSet that does not
    count such a pod would replace it, and the next one, for ever."""

    def __init__(self, kind: str, fact_of: Callable[[Obj], T]) -> None:
        self._kind = kind
        self._fact_of = fact_of
        self._of: dict[str, dict[Key, T]] = {}
        self._untold: dict[str, dict[Key, str]] = {}  # objects without a fact, and why

    def follow(self, mirror: Mirror) -> None:
        mirror.on_change(self._changed)

    def of(self, owner_uid: str) -> list[T]:
        """Raises ValueError when one of the objects cannot be understood."""
        for (_, name), why in self._untold.get(owner_uid, {}).items():
            raise ValueError(f"{name} cannot be understood: {why}")
        return list(self._of.get(owner_uid, {}).values())

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        before = "" if old is None else self._owner(old)
        after = "" if new is None else self._owner(new)
        if old is not None and before:
            self._drop(before, key_of(old))
        if new is not None and after:
            try:
                self._of.setdefault(after, {})[key_of(new)] = self._fact_of(new)
            except Exception as error:
                self._untold.setdefault(after, {})[key_of(new)] = repr(error)
                raise

    def _drop(self, owner_uid: str, key: Key) -> None:
        for table in (self._of, self._untold):
            known: dict[Key, T] | dict[Key, str] = table.get(owner_uid, {})
            known.pop(key, None)
            if not known:
                table.pop(owner_uid, None)

    def _owner(self, obj: Obj) -> str:
        owner = controller_of(obj)
        return str(owner["uid"]) if owner is not None and owner["kind"] == self._kind else ""
