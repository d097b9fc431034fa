"""Requests that are almost right, for every operation of the OpenAPI document."""

import copy
import random
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from tests.attack.openapi import Document, Operation
from tests.attack.target import JSON, NAMESPACE
from tests.conformance.record.samples import SAMPLES
from tests.faults.bombs import HARMLESS_QUERIES, QUERIES
from tests.faults.mutation import mutated, places

Json = Any
_NAMES = ("a", "a", "b", "c", "default", "x.y")
_ACCEPTED = (
    "*/*",
    JSON,
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    "text/html, image/*;q=0.8",
    ";;q=,",
)
_QUERY_VALUES: dict[str, tuple[str, ...]] = {
    "dryRun": ("All", "All", "All", "Some", ""),
    "fieldManager": ("me", "x" * 129, "", "\n"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "false", "x", ""),
    "limit": ("1", "0", "-1", "x"),
    "watch": ("0", "false"),
    "propagationPolicy": ("Background", "Foreground", "Orphan", "x"),
    "gracePeriodSeconds": ("0", "30", "-1", "x", "9" * 30),
    "timeoutSeconds": ("1", "x", "-1"),
    "labelSelector": ("a=b", "a in (b,c)", "!a", "a=b=c", "a in (", "é"),
    "fieldSelector": ("metadata.name=a", "metadata.name!=a", "x=y", "=", "metadata.name=\\"),
}
# What these say is asked of every later request. To try them, a dry run is enough.
_RULES_FOR_ALL = "/apis/admissionregistration.k8s.io/"
_JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class Sent:
    method: str
    path: str
    body: bytes | None
    headers: dict[str, str]

    def __str__(self) -> str:
        shown = "" if self.body is None else self.body[:1500].decode("utf-8", "replace")
        return f"{self.method} {self.path[:300]} {self.headers}\n{shown}"


def _collection(path: str) -> str:
    return path.removesuffix("/{name}").replace("/namespaces/{namespace}", "")


def _samples() -> dict[str, list[Json]]:
    """Good objects by the path of their collection, without namespaces."""
    found: dict[str, list[Json]] = {}
    for sample in SAMPLES:
        parts = sample.path.partition("?")[0].split("/")
        if "namespaces" in parts[:-1]:
            place = parts.index("namespaces")
            del parts[place : place + 2]
        found.setdefault("/".join(parts), []).append(sample.body)
    return found


class Requests:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._samples = _samples()

    def one(self, draw: random.Random, number: int) -> Sent:
        """Each operation in its turn, so that none is left out."""
        operations = self._document.operations
        operation = operations[number % len(operations)]
        name = draw.choice(_NAMES)
        path = operation.path.replace("{namespace}", NAMESPACE).replace("{name}", quote(name))
        headers = {"Accept": draw.choice(_ACCEPTED)}
        body = None
        if operation.media:
            media = draw.choice(operation.media)
            headers["Content-Type"] = JSON if media == "*/*" else media
            body = self._encoded(self._body(operation, media, name, draw), draw)
        return Sent(operation.method, path + self._query(operation, draw), body, headers)

    def _query(self, operation: Operation, draw: random.Random) -> str:
        wanted = {
            name: draw.choice(_QUERY_VALUES.get(name, ("x", "", "1")))
            for name in operation.queries
            if draw.random() < 0.2
        }
        is_write = operation.method != "GET"
        if is_write and (operation.path.startswith(_RULES_FOR_ALL) or draw.random() < 0.3):
            wanted["dryRun"] = "All"
        query = urlencode(wanted)
        if draw.random() < 0.05 and not is_write:
            query += "&" + draw.choice((*QUERIES, *HARMLESS_QUERIES))
        return f"?{query}" if query else ""

    def _body(self, operation: Operation, media: str, name: str, draw: random.Random) -> Json:
        if media == _JSON_PATCH:
            return self._json_patch(operation, draw)
        body = self._object(operation, name, draw)
        if operation.method == "PATCH" and isinstance(body, dict) and media != _APPLY:
            kept = draw.sample(sorted(body), min(len(body), 2))
            body = {key: body[key] for key in kept}
        if draw.random() < 0.4:
            body = mutated(body, draw)
        return body

    def _object(self, operation: Operation, name: str, draw: random.Random) -> Json:
        good = self._samples.get(_collection(operation.path))
        if good and draw.random() < 0.8:
            body = copy.deepcopy(draw.choice(good))
        else:
            body = self._document.value({"$ref": f"#/components/schemas/{operation.schema}"}, draw)
        for _ in range(draw.choice((0, 1, 1, 2, 4))):
            body = self._document.spliced(body, operation.schema, draw)
        if isinstance(body, dict):
            metadata = body.get("metadata")
            if isinstance(metadata, dict) and draw.random() < 0.95:
                metadata.pop("namespace", None)
                metadata["name"] = name
        return body

    def _json_patch(self, operation: Operation, draw: random.Random) -> Json:
        whole = self._object(operation, "a", draw)
        found = [*places(whole)]
        made = []
        for _ in range(draw.choice((1, 2, 5))):
            keys = [str(key) for key in draw.choice(found)]
            pointer = "".join("/" + k.replace("~", "~0").replace("/", "~1") for k in keys)
            made.append(
                {
                    "op": draw.choice(("add", "remove", "replace", "move", "copy", "test", "x")),
                    "path": draw.choice((pointer, pointer, pointer + "/-", "/x/y", "x", "")),
                    "from": draw.choice((pointer, "", "/metadata")),
                    "value": self._document.value({"type": "object"}, draw),
                }
            )
        return mutated(made, draw) if draw.random() < 0.3 else made

    def _encoded(self, body: Json, draw: random.Random) -> bytes:
        try:
            raw = orjson.dumps(body)
        except (TypeError, orjson.JSONEncodeError):  # half surrogates, huge numbers, odd keys
            raw = repr(body).encode("utf-8", "surrogatepass")
        if draw.random() < 0.02:
            return raw[: draw.randrange(len(raw) + 1)]
        return raw


_APPLY = "application/apply-patch+yaml"
