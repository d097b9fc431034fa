"""HTTP rules, create, update, delete and their errors, mostly shown on ConfigMaps."""

from __future__ import annotations

from tests.conformance.record.case import (
    JSON_PATCH,
    MERGE,
    PARTIAL_LIST,
    Case,
    Request,
    apply,
    delete,
    get,
    patch,
    post,
    put,
)
from tests.conformance.record.objects import CONFIGMAPS, configmap, pod

_C1 = post(CONFIGMAPS, configmap("c1"), save="c1")
_AT_C1 = f"{CONFIGMAPS}/c1"
_YAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y1}\ndata: {on: 'x'}\n"
_TWICE = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"},"data":{"a":"1"},"data":{}}'


def _raw(body: str, content_type: str, path: str = CONFIGMAPS) -> Request:
    return Request("POST", path, body, {"Content-Type": content_type})


_HTTP = (
    Case("no token", Request("GET", "/api/v1/nodes", anonymous=True)),
    Case(
        "wrong token",
        Request(
            "GET", "/api/v1/nodes", anonymous=True, headers={"Authorization": "Bearer nonsense"}
        ),
    ),
    Case("health without token", Request("GET", "/healthz", anonymous=True)),
    Case("version without token", Request("GET", "/version", anonymous=True)),
    Case("unknown path", get("/nope")),
    Case("unknown resource", get("/api/v1/foos")),
    Case("unknown subresource", get(f"{_AT_C1}/foo"), (_C1,)),
    Case("unknown group", get("/apis/foo.io/v1/bars")),
    Case("unknown version of a group", get("/apis/apps/v9/deployments")),
    Case("unknown api group root", get("/apis/foo.io")),
    Case("trailing slash", get("/api/v1/namespaces/default/")),
    Case("trailing slash on a collection", get(f"{CONFIGMAPS}/"), (_C1,)),
    Case("double slash", get("//api/v1/namespaces/default")),
    Case("head", Request("HEAD", "/api/v1/namespaces/default")),
    Case("options", Request("OPTIONS", "/api/v1/namespaces/default")),
    Case("post on a name", post(_AT_C1, configmap("c1")), (_C1,)),
    Case("put on a collection", put(CONFIGMAPS, configmap("c1")), (_C1,)),
    Case("patch on a collection", patch(CONFIGMAPS, {})),
    Case("post over all namespaces", post("/api/v1/configmaps", configmap("c1"))),
    Case("accept csv", get(CONFIGMAPS, "text/csv")),
    Case(
        "accept protobuf only",
        get("/api/v1/namespaces/default", "application/vnd.kubernetes.protobuf"),
    ),
    Case("accept yaml", get("/api/v1/namespaces/default", "application/yaml")),
    Case("accept anything", get("/api/v1/namespaces/default", "*/*")),
    Case("partial metadata list", get(CONFIGMAPS, PARTIAL_LIST), (_C1,)),
    Case("pretty", get("/api/v1/namespaces/default?pretty=true")),
    Case("body over the limit", post(CONFIGMAPS, configmap("c1"), padding=3 * 1024 * 1024)),
)

_CREATE = (
    Case("create configmap", post(CONFIGMAPS, configmap("c1"))),
    Case("create duplicate", post(CONFIGMAPS, configmap("c1")), (_C1,)),
    Case(
        "create without name",
        post(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
    ),
    Case("create with bad name", post(CONFIGMAPS, configmap("Bad_Name"))),
    Case("create with long name", post(CONFIGMAPS, configmap("n" * 254))),
    Case(
        "create in missing namespace", post("/api/v1/namespaces/absent/configmaps", configmap("c1"))
    ),
    Case(
        "create with other namespace",
        post(CONFIGMAPS, configmap("c1", metadata={"namespace": "other"})),
    ),
    Case("create wrong kind", post(CONFIGMAPS, pod("p"))),
    Case("create wrong apiVersion", post(CONFIGMAPS, configmap("c1") | {"apiVersion": "v2"})),
    Case(
        "create with resourceVersion",
        post(CONFIGMAPS, configmap("c1", metadata={"resourceVersion": "1"})),
    ),
    Case("create without kind", post(CONFIGMAPS, {"metadata": {"name": "nk"}})),
    Case("create malformed body", _raw("{bad", "application/json")),
    Case("create empty body", _raw("", "application/json")),
    Case("create body is a list", post(CONFIGMAPS, [])),
    Case("create bad content type", _raw("x", "text/csv")),
    Case("create from yaml", _raw(_YAML, "application/yaml")),
    Case("create from bad yaml", _raw("a: [", "application/yaml")),
    Case("create unknown field warns", post(CONFIGMAPS, configmap("c1", foo=1))),
    Case(
        "create unknown field ignored",
        post(f"{CONFIGMAPS}?fieldValidation=Ignore", configmap("c1", foo=1)),
    ),
    Case(
        "create unknown field strict",
        post(f"{CONFIGMAPS}?fieldValidation=Strict", configmap("c1", foo=1)),
    ),
    Case(
        "create two unknown fields strict",
        post(
            "/api/v1/namespaces/{ns}/pods?fieldValidation=Strict",
            pod("p", {"name": "c", "image": "x", "comand": ["a"]}, restartpolicy="Never"),
        ),
    ),
    Case(
        "create two unknown fields warn",
        post(
            "/api/v1/namespaces/{ns}/pods",
            pod("p", {"name": "c", "image": "x", "comand": ["a"]}, restartpolicy="Never"),
        ),
    ),
    Case("create bad fieldValidation", post(f"{CONFIGMAPS}?fieldValidation=x", configmap("c1"))),
    Case(
        "create duplicate field strict",
        _raw(_TWICE, "application/json", f"{CONFIGMAPS}?fieldValidation=Strict"),
    ),
    Case("create duplicate field warns", _raw(_TWICE, "application/json")),
    Case("create type error", post(CONFIGMAPS, configmap("c1") | {"data": "text"})),
    Case(
        "create nested type error",
        post(
            "/api/v1/namespaces/{ns}/pods",
            pod("p", {"name": "c", "image": "x", "ports": [{"containerPort": "eighty"}]}),
        ),
    ),
    Case("create bool for string", post(CONFIGMAPS, configmap("c1", {"a": True}))),
    Case("create bad dryRun", post(f"{CONFIGMAPS}?dryRun=x", configmap("c1"))),
    Case("create dryRun", post(f"{CONFIGMAPS}?dryRun=All", configmap("c1"))),
    Case(
        "create dryRun stores nothing",
        get(_AT_C1),
        (post(f"{CONFIGMAPS}?dryRun=All", configmap("c1")),),
    ),
    Case(
        "create with generateName",
        post(CONFIGMAPS, {"metadata": {"generateName": "gen-"}, "data": {}}),
    ),
    Case(
        "create with bad finalizer",
        post(CONFIGMAPS, configmap("c1", metadata={"finalizers": ["bad"]})),
    ),
    Case(
        "create with bad label",
        post(CONFIGMAPS, configmap("c1", metadata={"labels": {"a b": "x", "ok": "not ok!"}})),
    ),
    Case(
        "create with bad annotation",
        post(CONFIGMAPS, configmap("c1", metadata={"annotations": {"a/b/c": "x"}})),
    ),
    Case(
        "create with bad owner",
        post(
            CONFIGMAPS,
            configmap(
                "c1",
                metadata={
                    "ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "o", "uid": ""}]
                },
            ),
        ),
    ),
    Case(
        "create with two controllers",
        post(
            CONFIGMAPS,
            configmap(
                "c1",
                metadata={
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True}
                        for n in ("a", "b")
                    ]
                },
            ),
        ),
    ),
    Case(
        "create nulls are absent",
        post(
            CONFIGMAPS,
            configmap(
                "c1",
                {"a": "1"},
                metadata={"creationTimestamp": None, "labels": None, "annotations": {"x": "y"}},
            ),
        ),
    ),
    Case("create bad data key", post(CONFIGMAPS, configmap("c1", {"a b": "x"}))),
    Case(
        "create fieldManager too long",
        post(f"{CONFIGMAPS}?fieldManager={'m' * 129}", configmap("c1")),
    ),
    Case("create with fieldManager", post(f"{CONFIGMAPS}?fieldManager=me", configmap("c1"))),
)

_UPDATE = (
    Case(
        "put stale resourceVersion",
        put(_AT_C1, configmap("c1", {"a": "2"}, metadata={"resourceVersion": "1"})),
        (_C1,),
    ),
    Case(
        "put right resourceVersion",
        put(
            _AT_C1,
            configmap(
                "c1", {"a": "2"}, metadata={"resourceVersion": "${c1.metadata.resourceVersion}"}
            ),
        ),
        (_C1,),
    ),
    Case("put without resourceVersion", put(_AT_C1, configmap("c1", {"a": "3"})), (_C1,)),
    Case("put wrong uid", put(_AT_C1, configmap("c1", {"a": "3"}, metadata={"uid": "x"})), (_C1,)),
    Case("put name mismatch", put(_AT_C1, configmap("c2")), (_C1,)),
    Case("put absent", put(f"{CONFIGMAPS}/zzz", configmap("zzz"))),
    Case("put without change", put(_AT_C1, configmap("c1")), (_C1,)),
    Case("put dryRun", put(f"{_AT_C1}?dryRun=All", configmap("c1", {"a": "9"})), (_C1,)),
    Case("patch with plain json", patch(_AT_C1, {}, "application/json"), (_C1,)),
    Case(
        "json patch test fails",
        patch(_AT_C1, [{"op": "test", "path": "/data/a", "value": "no"}], JSON_PATCH),
        (_C1,),
    ),
    Case(
        "json patch missing path",
        patch(_AT_C1, [{"op": "remove", "path": "/data/zz"}], JSON_PATCH),
        (_C1,),
    ),
    Case(
        "merge patch stale resourceVersion",
        patch(_AT_C1, {"metadata": {"resourceVersion": "1"}}, MERGE),
        (_C1,),
    ),
    Case("merge patch absent", patch(f"{CONFIGMAPS}/zz", {"data": {}}, MERGE)),
    Case(
        "merge patch removes a key", patch(_AT_C1, {"data": {"a": None, "b": "2"}}, MERGE), (_C1,)
    ),
    Case("merge patch renames", patch(_AT_C1, {"metadata": {"name": "c2"}}, MERGE), (_C1,)),
    Case("merge patch not json", patch(_AT_C1, "{bad", MERGE), (_C1,)),
    Case("merge patch without change", patch(_AT_C1, {"data": {"a": "1"}}, MERGE), (_C1,)),
    Case(
        "merge patch unknown field strict",
        patch(f"{_AT_C1}?fieldValidation=Strict", {"foo": 1}, MERGE),
        (_C1,),
    ),
    Case(
        "apply without manager",
        patch(_AT_C1, configmap("c1"), "application/apply-patch+yaml"),
        (_C1,),
    ),
    Case("apply conflict", apply(_AT_C1, "m2", configmap("c1", {"a": "9"})), (_C1,)),
    Case("apply force", apply(_AT_C1, "m2", configmap("c1", {"a": "9"}), force=True), (_C1,)),
    Case("apply creates", apply(f"{CONFIGMAPS}/new1", "m2", configmap("new1"))),
)

_KEPT = post(CONFIGMAPS, configmap("c1", metadata={"finalizers": ["example.com/keep"]}), save="c1")

_DELETE = (
    Case("delete uid precondition", delete(_AT_C1, {"preconditions": {"uid": "x"}}), (_C1,)),
    Case(
        "delete resourceVersion precondition",
        delete(_AT_C1, {"preconditions": {"resourceVersion": "1"}}),
        (_C1,),
    ),
    Case("delete", delete(_AT_C1), (_C1,)),
    Case("delete absent", delete(_AT_C1)),
    Case("delete dryRun", delete(f"{_AT_C1}?dryRun=All"), (_C1,)),
    Case("delete bad propagationPolicy", delete(_AT_C1, {"propagationPolicy": "x"}), (_C1,)),
    Case(
        "delete orphanDependents and policy",
        delete(_AT_C1, {"orphanDependents": True, "propagationPolicy": "Orphan"}),
        (_C1,),
    ),
    Case("delete with finalizer", delete(_AT_C1), (_KEPT,)),
    Case("delete with finalizer twice", delete(_AT_C1), (_KEPT, delete(_AT_C1))),
    Case(
        "last finalizer removed",
        patch(_AT_C1, {"metadata": {"finalizers": None}}),
        (_KEPT, delete(_AT_C1)),
    ),
    Case(
        "gone after last finalizer",
        get(_AT_C1),
        (_KEPT, delete(_AT_C1), patch(_AT_C1, {"metadata": {"finalizers": None}})),
    ),
    Case(
        "finalizer added while deleting",
        patch(_AT_C1, {"metadata": {"finalizers": ["example.com/keep", "example.com/more"]}}),
        (_KEPT, delete(_AT_C1)),
    ),
    Case("delete collection", delete(CONFIGMAPS), (_C1, post(CONFIGMAPS, configmap("c2")))),
    Case(
        "delete collection by label",
        delete(f"{CONFIGMAPS}?labelSelector=x%3Dy"),
        (_C1, post(CONFIGMAPS, configmap("c2", metadata={"labels": {"x": "y"}}))),
    ),
    Case(
        "left after delete collection by label",
        get(CONFIGMAPS),
        (
            _C1,
            post(CONFIGMAPS, configmap("c2", metadata={"labels": {"x": "y"}})),
            delete(f"{CONFIGMAPS}?labelSelector=x%3Dy"),
        ),
    ),
    Case(
        "delete collection by field",
        delete(f"{CONFIGMAPS}?fieldSelector=metadata.name%3Dc1"),
        (_C1, post(CONFIGMAPS, configmap("c2"))),
    ),
    Case("delete kube-system", delete("/api/v1/namespaces/kube-system")),
)

CASES = (*_HTTP, *_CREATE, *_UPDATE, *_DELETE)
