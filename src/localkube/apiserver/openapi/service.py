"""OpenApi: answers /openapi/v3, its documents, and /openapi/v2.

The index names each document with a hash of what it is made of, so that clients keep documents for
good and still see a changed CRD at once. Documents are made when first asked for.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from email.utils import formatdate
from itertools import chain

import orjson

from kubeclient.objects import Obj
from localkube.about import __version__
from localkube.apiserver.kinds import Kind, Kinds
from localkube.apiserver.openapi import paths, schemas
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.schema.load import (
    OBJECT_META,
    definition_names,
    definitions,
    digest,
)

_V3 = "/openapi/v3"
_V2 = "/openapi/v2"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
# A document without definitions (only `swagger: "2.0"`). kubectl wants this form and no other for
# kinds that cannot be patched; what it does not find there it leaves to the server to check.
_BARE = b"\x0a\x032.0"
_YEAR_S = 365 * 24 * 3600
_INFO = {"title": "Kubernetes", "version": "1.35"}
_TOKEN = {"type": "apiKey", "description": "Bearer token", "name": "authorization", "in": "header"}
_ALWAYS = (schemas.DELETE_OPTIONS, schemas.STATUS, schemas.PATCH, OBJECT_META)

CustomSchemas = Callable[[Kind], bytes]


class OpenApi:
    def __init__(self, kinds: Kinds, custom_schemas: CustomSchemas) -> None:
        """`custom_schemas`: a CRD kind's openAPIV3Schema in JSON; empty if it has none."""
        self._kinds = kinds
        self._custom = custom_schemas
        self._generation = -1
        self._groups: dict[str, list[Kind]] = {}  # by the path below /openapi/v3/
        self._hashes: dict[str, str] = {}
        self._bodies: dict[str, bytes] = {}  # by hash

    def is_ready(self, path: str) -> bool:
        """Whether the answer is there, or has yet to be made, which takes long where there are
        large kinds. While one thread makes one, this is false in all others."""
        if self._generation != self._kinds.generation:
            return False
        if path == _V2:
            return self._whole() in self._bodies
        known = self._hashes.get(path.removeprefix(f"{_V3}/"))
        return known is None or known in self._bodies

    def answer(self, path: str, request: Request) -> Answer | None:
        """None: there is no such document."""
        self._refresh()
        if path == _V3:
            return self.index()
        if path == _V2:
            return self._version_2(request)
        return self.document(path.removeprefix(f"{_V3}/"), request)

    def index(self) -> Answer:
        self._refresh()
        found = {
            name: {"serverRelativeURL": f"{_V3}/{name}?hash={self._hashes[name]}"}
            for name in sorted(self._groups)
        }
        return Answer(200, orjson.dumps({"paths": found}))

    def document(self, name: str, request: Request) -> Answer | None:
        """`name`: api/v1, apis/apps/v1, ..."""
        self._refresh()
        if name not in self._groups:
            return None
        known = self._hashes[name]
        if known not in self._bodies:
            self._bodies[known] = orjson.dumps(self._version_3(self._groups[name]))
        headers = [("Vary", "Accept")]
        if request.text("hash") == known:
            expires = formatdate(time.time() + _YEAR_S, usegmt=True)
            headers += [("Cache-Control", "public, immutable"), ("Expires", expires)]
        return _cacheable(self._bodies[known], known, request, headers)

    def _refresh(self) -> None:
        generation = self._kinds.generation
        if self._generation == generation:
            return
        self._groups = {}
        for kind in list(self._kinds):
            name = f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"
            self._groups.setdefault(name, []).append(kind)
        self._hashes = {name: self._hash(kinds) for name, kinds in self._groups.items()}
        kept = {*self._hashes.values()}
        self._bodies = {key: body for key, body in self._bodies.items() if key in kept}
        self._generation = generation  # last: from here on it is ready

    def _hash(self, kinds: list[Kind]) -> str:
        rows = [[asdict(kind), orjson.Fragment(self._custom(kind) or b"null")] for kind in kinds]
        source = orjson.dumps([__version__, digest(), rows])
        return hashlib.sha256(source).hexdigest().upper()

    def _version_3(self, kinds: list[Kind]) -> Obj:
        return {
            "openapi": "3.0.0",
            "info": _INFO,
            "paths": dict(chain.from_iterable(map(paths.of_kind, kinds))),
            "components": {
                "schemas": dict(self._schemas(kinds, schemas.V3_PREFIX)),
                "securitySchemes": {"BearerToken": _TOKEN},
            },
        }

    def _version_2(self, request: Request) -> Answer:
        accept = request.headers.get("accept", "*/*")
        if _PROTOBUF in accept:
            return Answer(200, _BARE, _PROTOBUF.replace("@", "."))  # no @ may be in an answer's
        if not any(media in accept for media in ("application/json", "*/*", "application/*")):
            return Answer(406)
        whole = self._whole()
        if whole not in self._bodies:
            found = dict(self._schemas(list(self._kinds), schemas.V2_PREFIX))
            document = {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": found}
            self._bodies[whole] = orjson.dumps(document)
        return _cacheable(self._bodies[whole], whole, request, [("Vary", "Accept")])

    def _whole(self) -> str:
        return hashlib.sha256("".join(self._hashes.values()).encode()).hexdigest().upper()

    def _schemas(self, kinds: list[Kind], prefix: str) -> Iterator[tuple[str, Obj]]:
        names = set(_ALWAYS)
        for kind in kinds:
            if kind.custom:
                yield from schemas.custom(kind, orjson.loads(self._custom(kind) or b"null"), prefix)
            else:
                names |= _roots(kind)
        for name in schemas.closure(names):
            yield name, schemas.built_in(name, prefix)


def _roots(kind: Kind) -> set[str]:
    own = schemas.definition_name(kind)
    others = {definition_names().get((s.group, s.version, s.kind)) for s in kind.subresources}
    return {name for name in (own, f"{own}List", *others) if name in definitions()}


def _cacheable(body: bytes, tag: str, request: Request, headers: list[tuple[str, str]]) -> Answer:
    headers = [("ETag", f'"{tag}"'), *headers]
    if request.headers.get("if-none-match") == f'"{tag}"':
        return Answer(304, headers=tuple(headers))
    return Answer(200, body, headers=tuple(headers))
