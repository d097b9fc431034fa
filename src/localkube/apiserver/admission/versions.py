"""Versions: the objects of a write in the version that a webhook or a policy asks for."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes
from localkube.apiserver.defaults.convert import from_storage, to_storage
from localkube.apiserver.kinds import Kind

# A custom object in the version that is named, by its kind's webhook perhaps; may raise ApiError.
Convert: TypeAlias = Callable[[Obj, Kind, str], Awaitable[Obj]]


class Versions:
    def __init__(self, convert: Convert) -> None:
        self._convert = convert

    async def of(self, attributes: Attributes, kind: Kind) -> tuple[Obj | None, Obj | None]:
        """The new and the old object in the version of `kind`."""
        if kind is attributes.kind:
            return attributes.obj, attributes.old
        new, old = [
            None
            if thing is None
            else await self.converted(orjson.loads(orjson.dumps(thing)), attributes.kind, kind)
            for thing in (attributes.obj, attributes.old)
        ]
        return new, old

    async def converted(self, thing: Obj, source: Kind, target: Kind) -> Obj:
        if source is target:
            return thing
        if source.custom:
            return await self._convert(thing, source, target.api_version)
        converted = from_storage(to_storage(thing, source), target)
        return converted | {"apiVersion": target.api_version, "kind": target.kind}

    async def stored(self, thing: Obj, kind: Kind) -> Obj:
        """A stored object, which must not be changed, as `kind` serves it."""
        if thing.get("apiVersion") == kind.api_version:
            return thing
        copy = orjson.loads(orjson.dumps(thing))
        if kind.custom:
            return await self._convert(copy, kind, kind.api_version)
        return from_storage(copy, kind) | {"apiVersion": kind.api_version, "kind": kind.kind}
