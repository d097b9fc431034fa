"""Conversions: objects of a custom kind from one of its versions to another.

A CRD's strategy says how: None changes the name of the version alone; Webhook asks the webhook that
the CRD names. An object is sent only if it lies in another version than the wanted one. What a
webhook made of a stored object is kept while the CRD stays the same, so that many watches of one
kind cost one call for each change, as with the watch cache of kube-apiserver.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec
import orjson

from kubeclient.objects import Obj
from kubeclient.turns import Turns
from localkube.apiserver import status
from localkube.apiserver.admission.attributes import ClusterView
from localkube.apiserver.admission.webhook_client import NotReached
from localkube.apiserver.admission.webhook_config import Callee, callee_of
from localkube.apiserver.conversion.kept import Kept
from localkube.apiserver.conversion.review import (
    Refused,
    converted_objects,
    restored,
    review,
    review_version,
)
from localkube.apiserver.decode.weight import MAX_VALUES, most_values
from localkube.apiserver.kinds import Kind
from localkube.apiserver.schema.check import check
from localkube.apiserver.schema.fast import is_clean
from localkube.apiserver.schema.node import Schema
from localkube.apiserver.schema.structural import crd_schema
from localkube.apiserver.store.record import Record
from localkube.apiserver.waiting import within_a_task

_TIMEOUT_S = 30  # of every conversion webhook of Kubernetes
# Of one call. An answer may be three times as large (admission/webhook_client.py).
_CALL_BYTES = 1024 * 1024
_CALL_VALUES = MAX_VALUES // 2
# Requests that wait for one webhook: half of the writes that the server takes (security/limits.py).
MOST_WAITING = 200
_LONGEST_TEXT = 4096  # of an error, which may repeat what the webhook said

_T = TypeVar("_T")


class Client(Protocol):
    async def post(
        self, callee: Callee, document: Obj, cluster: ClusterView, read: Callable[[Any], _T]
    ) -> _T: ...


@dataclass(slots=True)
class _Webhook:
    """The conversion webhook of one CRD as it is now, with what it has converted."""

    crd: Obj
    callee: Callee
    review_versions: tuple[str, ...]
    schemas: dict[str, Schema] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    waiting: int = 0  # requests

    async def schema(self, api_version: str) -> Schema:
        """Of any version, served or not; made in a thread, because it may be large. Raises ApiError
        for a version that the CRD has lost since the request, which may be a watch, began."""
        version = api_version.rpartition("/")[2]
        if version not in self.schemas:
            if all(each["name"] != version for each in self.crd["spec"]["versions"]):
                raise status.no_such_resource()
            self.schemas[version] = await asyncio.to_thread(_compiled, self.crd, version)
        return self.schemas[version]


def _compiled(crd: Obj, version: str) -> Schema:
    schema = crd_schema(crd, version)
    is_clean({}, schema)  # makes the fast check, too
    return schema


class Conversions:
    def __init__(self, cluster: ClusterView, client: Client) -> None:
        self._cluster = cluster
        self._client = client
        self._webhooks: dict[str, _Webhook] = {}  # by the name of the CRD, which is the resource's

    def replace(self, name: str, crd: Obj | None) -> None:
        """The CRD of that name is now `crd`, or gone."""
        self._webhooks.pop(name, None)
        conversion = (crd or {}).get("spec", {}).get("conversion") or {}
        if crd is None or conversion.get("strategy") != "Webhook":
            return
        webhook = conversion.get("webhook") or {}
        self._webhooks[name] = _Webhook(
            crd,
            callee_of(webhook.get("clientConfig") or {}, _TIMEOUT_S),
            tuple(webhook.get("conversionReviewVersions") or ()),
        )

    def has_webhook(self, kind: Kind) -> bool:
        return kind.custom and kind.resource in self._webhooks

    async def served(
        self, records: Sequence[Record], kind: Kind, *, in_watch: bool = False
    ) -> Sequence[Record]:
        """The records with their objects in the version of `kind`. Raises ApiError. `in_watch`: it
        takes no place of writes, and hears of a change at the same time as all others."""
        webhook = self._webhooks.get(kind.resource) if kind.custom else None
        if webhook is None:
            return records
        wanted = kind.api_version
        found: list[Record] = []
        objects: dict[int, Obj] = {}
        turns = Turns()
        for place, record in enumerate(records):
            await turns.next()
            known = webhook.kept.get(record, wanted)
            found.append(known or record)
            if known is not None:
                continue
            obj = record.obj()
            if obj["apiVersion"] != wanted:
                objects[place] = obj
        converted = await self._all_converted(webhook, list(objects.values()), wanted, in_watch)
        for place, obj in zip(objects, converted, strict=True):
            await turns.next()
            made = msgspec.structs.replace(
                found[place], labels=obj["metadata"].get("labels") or {}, body=orjson.dumps(obj)
            )
            webhook.kept.put(found[place], made, wanted)
            found[place] = made
        return found

    async def served_one(self, record: Record, kind: Kind) -> Record:
        if not self.has_webhook(kind):
            return record
        return (await self.served([record], kind))[0]

    async def stored(self, obj: Obj, kind: Kind) -> Obj:
        """An object of a custom kind in the version that its kind is stored in now."""
        return await self.between(obj, kind, f"{kind.group}/{kind.storage_version}")

    async def between(self, obj: Obj, kind: Kind, wanted: str) -> Obj:
        """A custom object in another version of its kind. Raises ApiError."""
        webhook = self._webhooks.get(kind.resource)
        if webhook is None:
            return obj | {"apiVersion": wanted}
        if obj["apiVersion"] == wanted:
            return obj
        return (await self._all_converted(webhook, [obj], wanted))[0]

    async def _all_converted(
        self, webhook: _Webhook, objects: Sequence[Obj], wanted: str, in_watch: bool = False
    ) -> list[Obj]:
        found: list[Obj] = []
        async for part in _parts(objects):
            with nullcontext() if in_watch else _counted(webhook):
                found += await self._converted(webhook, part, wanted)
        return found

    async def _converted(self, webhook: _Webhook, objects: list[Obj], wanted: str) -> list[Obj]:
        await within_a_task()
        first, schema = objects[0], await webhook.schema(wanted)
        head = f"conversion webhook for {first['apiVersion']}, Kind={first['kind']}"
        version, uid = review_version(webhook.review_versions), str(uuid.uuid4())
        if version is None:
            raise _failure("no supported conversion review versions")
        document = review(version, uid, objects, wanted)

        def read(answer: Any) -> list[Obj]:
            return _made(converted_objects(answer, version, uid), objects, wanted, schema)

        try:
            return await self._client.post(webhook.callee, document, self._cluster, read)
        except _Unlike as error:
            raise _failure(f"{head} {error}") from None
        except (NotReached, Refused) as error:
            raise _failure(f"{head} failed: {error}") from None


@contextmanager
def _counted(webhook: _Webhook) -> Iterator[None]:
    """Raises ApiError: one that never answers must not hold all writes of the server."""
    if webhook.waiting >= MOST_WAITING:
        whose = webhook.crd["metadata"]["name"]
        waiting = f"{MOST_WAITING} requests wait for the conversion webhook of {whose}"
        raise status.too_many_requests(f"{waiting}, please try again later")
    webhook.waiting += 1
    try:
        yield
    finally:
        webhook.waiting -= 1


class _Unlike(Exception):
    """What was returned is not what was sent, converted."""


def _made(converted: list[Any], objects: list[Obj], wanted: str, schema: Schema) -> list[Obj]:
    """Raises _Unlike."""
    if len(converted) != len(objects):
        raise _Unlike(f"returned {len(converted)} objects, expected {len(objects)}")
    try:
        pairs = enumerate(zip(objects, converted, strict=True))
        made = [restored(old, new, wanted, place) for place, (old, new) in pairs]
    except Refused as error:
        raise _Unlike(str(error)) from None
    for obj in made:
        # What the schema does not know goes, as from what a client sends. The rest is not
        # judged: a bad value could only be repaired by reading it.
        if not is_clean(obj, schema):
            check(obj, schema)
    return made


async def _parts(objects: Iterable[Obj]) -> AsyncIterator[list[Obj]]:
    """Parts that one call can take, none of them empty."""
    part: list[Obj] = []
    size = values = 0
    turns = Turns()
    for obj in objects:
        await turns.next()
        text = orjson.dumps(obj)
        size, values = size + len(text), values + most_values(text)
        if part and (size > _CALL_BYTES or values > _CALL_VALUES):
            yield part
            part, size, values = [], len(text), most_values(text)
        part.append(obj)
    if part:
        yield part


def _failure(text: str) -> status.ApiError:
    """As kube-apiserver answers: an error without a reason."""
    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_LONGEST_TEXT]}... ({len(text)} characters)"
    return status.failure(500, "", text)
