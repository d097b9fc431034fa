"""Bodies, paths and queries that are meant to break a server."""

import base64
import json
from typing import Any
from urllib.parse import quote

MIB = 1 << 20


def _object(**parts: Any) -> bytes:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bomb"}} | parts
    return json.dumps(body).encode()


def _named(name: str) -> bytes:
    return _object(metadata={"name": name})


def _laughs(anchors: int) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for number in range(1, anchors):
        lines.append(f"a{number}: &a{number} [" + ", ".join([f"*a{number - 1}"] * 10) + "]")
    return "\n".join(lines).encode()


_HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\ndata:\n"
_DEEP = 10_000

JSON_BODIES: dict[str, bytes] = {
    "nothing": b"",
    "half": b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bo',
    "a list": b"[]",
    "null": b"null",
    "a string": b'"x"',
    "two": b"{}{}",
    "no value": b'{"a":}',
    "not UTF-8": b'{"metadata": {"name": "\xff\xfe"}}',
    "UTF-16": '{"kind": "ConfigMap"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + _object(),
    "NaN": b'{"metadata": {"name": "bomb"}, "data": NaN}',
    "Infinity": b'{"metadata": {"name": "bomb"}, "data": -Infinity}',
    "an endless number": b'{"metadata": {"name": "bomb"}, "data": ' + b"9" * 100_000 + b"}",
    "a huge exponent": b'{"metadata": {"name": "bomb"}, "data": 1e99999999}',
    "half a surrogate": b'{"metadata": {"name": "bomb"}, "data": {"a": "\\ud800"}}',
    "surrogates in UTF-8": b'{"metadata": {"name": "bomb"}, "data": {"a": "\xed\xa0\x80"}}',
    "a control character": b'{"metadata": {"name": "bo\x01mb"}}',
    "deep lists": b'{"data": ' + b"[" * _DEEP + b"]" * _DEEP + b"}",
    "deep objects": b'{"a":' * _DEEP + b"1" + b"}" * _DEEP,
    "deep and open": b"[" * 100_000,
    "another type": _object(data=["a"]),
    "numbers for names": _object(metadata={"name": 7}),
    "an escape in the name": _named("\x1b[2J"),
    "a path for a name": _named("../../etc/passwd"),
    "dots for a name": _named(".."),
    "a slash in the name": _named("a/b"),
    "a long name": _named("x" * 5000),
    "a NUL in the name": _named("a\x00b"),
    "another kind": _object(kind="Pod"),
    "a version of nobody": _object(apiVersion="v1/v2/v3"),
    "too long an annotation": _object(
        metadata={"name": "bomb", "annotations": {"a": "x" * (300 * 1024)}}
    ),
    "ten thousand labels": _object(
        metadata={"name": "bomb", "labels": {f"{n}/{n}/{n}": "" for n in range(10_000)}}
    ),
    "two MiB": _object(data={"a": "x" * (2 * MIB)}),
}

YAML_BODIES: dict[str, bytes] = {
    "a billion laughs": _laughs(10),
    "laughs in the data": _HEAD + b"  " + _laughs(10).replace(b"\n", b"\n  "),
    "itself": _HEAD + b"  a: &a [*a]\n",
    "itself, as a key": b"&a [*a]: 1",
    "merged laughs": b"a: &a {x: 1}\n"
    + b"".join(b"b%d: &b%d {<<: [*a%s]}\n" % (n, n, b", *a" * 500) for n in range(50)),
    "deep lists": _HEAD + b"  a: " + b"[" * _DEEP,
    "deep objects": _HEAD + b"  a: " + b"{a: " * _DEEP,
    "deep blocks": b"".join(b" " * n + b"a:\n" for n in range(1500)),
    "Python": _HEAD + b"  a: !!python/object/apply:os.system ['true']\n",
    "a tab": _HEAD + b"\ta: 1\n",
    "an anchor to nowhere": _HEAD + b"  a: *nowhere\n",
    "infinity": _HEAD + b"  a: .inf\n",
    "not UTF-8": _HEAD + b"  a: \xff\xfe\n",
    "a NUL": _HEAD + b"  a: \x00\n",
    "a million keys": _HEAD + b"".join(b"  k%d: v\n" % n for n in range(200_000)),
}

# Odd, and yet YAML: Go's parser takes some of them.
ODD_YAML_BODIES: dict[str, bytes] = {
    "a tag of nobody": _HEAD + b"  a: !what ever\n",
    "two documents": _HEAD + b"  a: '1'\n---\n" + _HEAD + b"  b: '2'\n",
    "a date": _HEAD + b"  a: 2026-01-01\n",
    "an endless number": _HEAD + b"  a: " + b"9" * 100_000,
    "sixties": _HEAD + b"  a: " + b"1:" * 50_000 + b"1\n",
}

PATHS = (
    "/api/v1/namespaces/default/configmaps/../../../../etc/passwd",
    "/api/v1/namespaces/default/configmaps/%2e%2e/%2e%2e/secrets",
    "/api/v1/namespaces/%2e%2e/configmaps",
    "/api/v1/namespaces/default/configmaps/a%00b",
    "/api/v1/namespaces/default/configmaps/a%2fb",
    "/api/v1/namespaces/default%2fsecrets/configmaps",
    "/api/v1/namespaces/default/configmaps/%",
    "/api/v1/namespaces/default/configmaps/%zz",
    "/api/v1/namespaces/default/configmaps/%c0%ae%c0%ae",
    "/api/v1/namespaces/default/configmaps/%ff",
    "/api/v1/namespaces/default/configmaps/%ed%a0%80",
    "/api/v1/namespaces/default/configmaps/x%0d%0aSet-Cookie:%20a",
    "/api/v1/namespaces/default/configmaps/" + "x" * 7000,
    "/api/v1/namespaces/default/configmaps" + "/a" * 500,
    "/api/v1/namespaces/default/pods/a/exec/b/c",
    "/api/v1/namespaces/default/pods/a/log",
    "/api/v1/nodes/x/proxy/../../secrets",
    "//api//v1//namespaces//default//configmaps//a",
    "/api/v1//namespaces",
    "/./api/v1/../v1/nope",
    "/apis/%2e%2e/api/v1",
    "/apis/a/b/c/d/e/f/g",
    "/api/v2",
    "/\\..\\..\\windows",
    "/openapi/v3/../../etc",
    "/openapi/v3/apis/nobody/v1?hash=../../x",
    "/logs/../../etc/passwd",
    "/debug/pprof/heap",
    "/api/v1/namespaces/default/configmaps/a;b=c",
    "/api/v1/namespaces/default/configmaps/a?b?c#d",
)


def _token(**parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


QUERIES = (
    "limit=abc",
    "limit=1e3",
    "limit=" + "9" * 400,
    "limit=%D9%A3",
    "continue=x",
    "continue=" + "A" * 7000,
    "continue=" + quote("\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")),
    "continue=" + _token(),
    "continue=" + _token(v="meta.k8s.io/v1", rv=-5, start=["a", "b"]),
    "continue=" + _token(v="meta.k8s.io/v1", rv=10**30, start=["a", "b"]),
    "continue=" + _token(v="meta.k8s.io/v1", rv="x", start=["a", "b"]),
    "continue=" + _token(v="meta.k8s.io/v1", rv=1, start=[1, None]),
    "continue=" + _token(v="meta.k8s.io/v1", rv=1, start="../x"),
    "continue=" + _token(v="meta.k8s.io/v1", rv=1, start=[[[[]]], {}]),
    "continue=" + base64.urlsafe_b64encode(b"[" * 3000).decode(),
    "resourceVersion=-1",
    "resourceVersion=abc",
    "resourceVersion=" + "9" * 400,
    "resourceVersion=18446744073709551616",
    "resourceVersion=5&resourceVersionMatch=Sometimes",
    "resourceVersionMatch=Exact",
    "labelSelector=" + "a" * 7000,
    "labelSelector=" + quote("a in (" * 1000),
    "labelSelector=" + quote(",".join(f"k{n}!=v" for n in range(700))) + "%20%20bad%20one",
    "labelSelector=" + quote("a in (b"),
    "labelSelector=" + quote("!!a"),
    "labelSelector=" + quote("a==b==c"),
    "labelSelector=%00",
    "labelSelector=" + quote("\N{PILE OF POO}=1"),
    "labelSelector=%ff",
    "fieldSelector=" + quote("spec.nobody=1"),
    "fieldSelector=" + quote("metadata.name=a\\"),
    "fieldSelector=" + quote("=,=,="),
    "fieldSelector=" + "x" * 7000,
    "timeoutSeconds=abc&watch=1",
    "watch=1&sendInitialEvents=1",
    "sendInitialEvents=true",
)

HARMLESS_QUERIES = (
    "limit=-1",
    "limit=0",
    "limit=9223372036854775807",
    "&&&=&=x&%=%&a",
    "a=" + "&a=".join("x" * 1000),
    "pretty=" + "x" * 5000,
    "labelSelector=" + quote(",".join(f"k{n}!=v" for n in range(300))),
)
