"""Bodies that are hard to read."""

from collections.abc import Callable
from typing import Any

from bench.heavy.bodies import (
    CONFIGMAPS,
    DRY,
    JSON,
    MIB,
    PROTOBUF,
    ROOM,
    YAML,
    Heavy,
    Named,
    map_body,
    protobuf_map,
    up_to,
)

_PATH = f"{CONFIGMAPS}{DRY}"
_HEAD = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"heavy"},'
_YAML_HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: heavy}\ndata:\n"


def _map(body: Callable[[], bytes], media: str = JSON) -> Callable[[], Heavy]:
    return lambda: Heavy("POST", _PATH, body(), media)


def texts() -> Named:
    yield from _json_texts()
    yield from _large_maps()
    yield from _yaml_texts()


def _json_texts() -> Named:
    yield "2.9 MB of [", _map(lambda: b"[" * 2_900_000)
    yield "1.4 MB of [ and of ]", _map(lambda: b"[" * 1_400_000 + b"]" * 1_400_000)
    yield '3 MB of {"a":', _map(lambda: b'{"a":' * 600_000)
    yield "3 MB of [],", _map(lambda: _HEAD + b'"data":[' + b"[]," * 1_000_000 + b"[]]}")
    yield (
        "3 MB of one repeated key",
        _map(lambda: _HEAD + b'"data":{' + up_to(ROOM, lambda n: b'"a":""') + b"}}"),
    )
    yield (
        "3 MB of repeated objects",
        _map(lambda: _HEAD + b'"data":{' + up_to(ROOM, lambda n: b'"a":{"b%d":{}}' % n) + b"}}"),
    )
    yield (
        "repeated key, 98,000 times",
        _map(lambda: _HEAD + b'"data":{' + b",".join([b'"a":""'] * 98_000) + b"}}"),
    )
    yield (
        "repeated objects, 33,000 times",
        _map(
            lambda: (
                _HEAD + b'"data":{' + b",".join(b'"a":{"b%d":1}' % n for n in range(33_000)) + b"}}"
            )
        ),
    )
    yield (
        "repeated keys below a long one",
        _map(
            lambda: (
                _HEAD + b'"data":{"' + b"x" * MIB + b'":{' + b",".join([b'"a":1'] * 90_000) + b"}}}"
            )
        ),
    )
    yield (
        "3 MB of repeated keys in pairs",
        _map(
            lambda: _HEAD + b'"data":{' + up_to(ROOM, lambda n: b'"%d":"","%d":""' % (n, n)) + b"}}"
        ),
    )
    yield "3 MB of escapes", _map(lambda: _HEAD + b'"data":{"a":"' + b"\\u0041" * 500_000 + b'"}}')
    yield "3 MB of quotes", _map(lambda: _HEAD + b'"data":{"a":"' + b'\\"' * 1_500_000 + b'"}}')


def _large_maps() -> Named:
    yield "99,000 unknown fields", _map(lambda: _HEAD + _unknown() + b"}")
    yield (
        "99,000 unknown fields, strict",
        lambda: Heavy("POST", f"{_PATH}&fieldValidation=Strict", _HEAD + _unknown() + b"}"),
    )
    yield "map of 99,000 keys", _map(lambda: map_body(data={f"k{n}": "" for n in range(99_000)}))
    yield (
        "map of 99,000 bad keys",
        _map(lambda: map_body(data={f"/{n}": "" for n in range(99_000)})),
    )
    yield "map of 99,000 numbers", _map(lambda: map_body(data={f"k{n}": n for n in range(99_000)}))
    yield "map of 200,000 keys in protobuf", _map(protobuf_map, PROTOBUF)
    yield (
        "99,000 finalizers",
        _map(
            lambda: map_body(
                metadata={"name": "heavy", "finalizers": [f"a/{n}" for n in range(99_000)]}
            )
        ),
    )
    yield (
        "19,000 owners",
        _map(lambda: map_body(metadata={"name": "heavy", "ownerReferences": _owners()})),
    )
    yield "managedFields of 49,000", _map(lambda: map_body(metadata=_managed()))


def _yaml_texts() -> Named:
    yield "3 MB of '- '", _map(lambda: b"- " * 1_500_000, YAML)
    yield "3 MB of '- a' lines", _map(lambda: _YAML_HEAD + b"- a\n" * 750_000, YAML)
    yield "flow sequence", _map(lambda: b"[" + b"a," * 1_500_000 + b"]", YAML)
    yield "3 MB of YAML [", _map(lambda: b"[" * 2_900_000, YAML)
    yield "3 MB of {a: ", _map(lambda: b"{a: " * 700_000, YAML)
    yield "3 MB of ? ", _map(lambda: b"? " * 1_400_000, YAML)
    yield "3 MB of spaces in YAML", _map(lambda: b" " * 3_000_000 + b"a", YAML)
    yield "3 MB of line ends in YAML", _map(lambda: b"\n" * 3_000_000 + b"a", YAML)
    yield "3 MB of one YAML word", _map(lambda: _YAML_HEAD + b"  a: " + b"x" * 3_000_000, YAML)
    yield "3 MB of YAML words", _map(lambda: _YAML_HEAD + b"  a: " + b"x " * 1_500_000, YAML)
    yield (
        "3 MB of quoted YAML escapes",
        _map(lambda: _YAML_HEAD + b'  a: "' + b"\\n" * 1_500_000 + b'"', YAML),
    )
    yield "3 MB of YAML comments", _map(lambda: b"#\n" * 1_500_000, YAML)
    yield "3 MB of YAML documents", _map(lambda: b"---\n" * 750_000, YAML)
    yield (
        "YAML aliases",
        _map(lambda: b"a: &a {" + b"x: 1, " * 10 + b"y: 1}\nb: [" + b"*a, " * 700_000 + b"]", YAML),
    )
    yield "YAML anchors", _map(lambda: up_to(ROOM, lambda n: b"a%d: &a%d 1" % (n, n), b"\n"), YAML)
    yield (
        "YAML merges",
        _map(
            lambda: (
                b"a: &a {"
                + b", ".join(b"x%d: 1" % n for n in range(300))
                + b"}\n"
                + up_to(ROOM, lambda n: b"b%d: {<<: *a}" % n, b"\n")
            ),
            YAML,
        ),
    )
    yield (
        "YAML map of 90,000 keys",
        _map(lambda: _YAML_HEAD + b"".join(b"  k%d: ''\n" % n for n in range(45_000)), YAML),
    )
    yield "YAML repeated keys", _map(lambda: _YAML_HEAD + b"  a: b\n" * 45_000, YAML)


def _unknown() -> bytes:
    return b",".join(b'"u%d":1' % n for n in range(99_000))


def _owners() -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": f"u{n}"} for n in range(19_000)
    ]


def _managed() -> dict[str, Any]:
    fields: dict[str, Any] = {"f:data": {f"f:k{n}": {} for n in range(49_000)}}
    row = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {"name": "heavy", "managedFields": [row]}
