"""Lists, selectors, pages, watches, tables and partial objects."""

from __future__ import annotations

from tests.conformance.record.case import (
    PARTIAL,
    PARTIAL_LIST,
    TABLE,
    Case,
    Request,
    delete,
    get,
    patch,
    post,
    watch,
)
from tests.conformance.record.objects import (
    CONFIGMAPS,
    DEPLOYMENTS,
    NS,
    PODS,
    binding,
    configmap,
    deployment,
    obj,
    pod,
)

_THREE = tuple(
    post(
        CONFIGMAPS,
        configmap(f"c{n}", {}, metadata={"labels": {"n": str(n), "all": ""}}),
        save=f"c{n}",
    )
    for n in (1, 2, 3)
)
_TWO_PODS = (
    post(PODS, pod("p1")),
    post(PODS, pod("p2")),
    post(f"{PODS}/p1/binding", binding("p1", "node-1")),
)
_SINCE = "resourceVersion=${namespace.metadata.resourceVersion}"


def _label(name: str, selector: str) -> Case:
    return Case(f"label selector: {name}", get(f"{CONFIGMAPS}?labelSelector={selector}"), _THREE)


def _field(name: str, selector: str, path: str = PODS) -> Case:
    return Case(f"field selector: {name}", get(f"{path}?fieldSelector={selector}"), _TWO_PODS)


_SELECTORS = (
    _label("equal", "n%3D1"),
    _label("double equal", "n%3D%3D1"),
    _label("not equal", "n!%3D1"),
    _label("in", "n+in+(1,2)"),
    _label("notin", "n+notin+(1,2),all"),
    _label("exists", "all"),
    _label("does not exist", "!n"),
    _label("greater", "n%3E1"),
    _label("less", "n%3C2,all"),
    _label("greater than text", "n%3Ex"),
    _label("two equals", "a%3D%3Db%3D%3Dc"),
    _label("in without values", "n+in+()"),
    _label("in unclosed", "n+in+(1"),
    _label("bad key", "a+b"),
    _label("bad value", "a%3D%24"),
    _label("long value", f"a%3D{'x' * 64}"),
    _label("only a comma", ","),
    _label("empty value", "all%3D"),
    _field("name", "metadata.name%3Dp1"),
    _field("not name", "metadata.name!%3Dp1"),
    _field("node", "spec.nodeName%3Dnode-1"),
    _field("no node", "spec.nodeName%3D"),
    _field("phase and policy", "status.phase%3DPending,spec.restartPolicy%3DAlways"),
    _field("unknown label", "spec.foo%3D1"),
    _field("unknown label of configmaps", "data.a%3D1", CONFIGMAPS),
    _field("no operator", "metadata.name"),
    _field("in is not offered", "metadata.name+in+(a)"),
)

_LISTS = (
    Case("list", get(CONFIGMAPS), _THREE),
    Case("list empty", get(CONFIGMAPS)),
    Case("list of a missing namespace", get("/api/v1/namespaces/absent/configmaps")),
    Case("list future resourceVersion", get(f"{PODS}?resourceVersion=99999999")),
    Case("list bad resourceVersion", get(f"{PODS}?resourceVersion=abc")),
    Case("list resourceVersion 0", get(f"{CONFIGMAPS}?resourceVersion=0&limit=1"), _THREE),
    Case(
        "list not older than",
        get(
            f"{CONFIGMAPS}?resourceVersion=${{c3.metadata.resourceVersion}}"
            "&resourceVersionMatch=NotOlderThan"
        ),
        _THREE,
    ),
    Case(
        "list exact",
        get(
            f"{CONFIGMAPS}?resourceVersion=${{c1.metadata.resourceVersion}}"
            "&resourceVersionMatch=Exact"
        ),
        _THREE,
    ),
    Case("list bad match", get(f"{PODS}?resourceVersion=1&resourceVersionMatch=Some")),
    Case("list match without resourceVersion", get(f"{PODS}?resourceVersionMatch=Exact")),
    Case("list exact 0", get(f"{PODS}?resourceVersion=0&resourceVersionMatch=Exact")),
    Case("list bad continue", get(f"{PODS}?limit=1&continue=zzz")),
    Case("list bad limit", get(f"{PODS}?limit=x")),
    Case("list first page", get(f"{CONFIGMAPS}?limit=2"), _THREE),
    Case(
        "list second page",
        get(f"{CONFIGMAPS}?limit=2&continue=${{page.metadata.continue}}"),
        (*_THREE, get(f"{CONFIGMAPS}?limit=2", save="page")),
    ),
    Case(
        "list second page after a delete",
        get(f"{CONFIGMAPS}?limit=2&continue=${{page.metadata.continue}}"),
        (*_THREE, get(f"{CONFIGMAPS}?limit=2", save="page"), delete(f"{CONFIGMAPS}/c3")),
    ),
    Case(
        "list continue with resourceVersion",
        get(f"{CONFIGMAPS}?limit=2&resourceVersion=1&continue=${{page.metadata.continue}}"),
        (*_THREE, get(f"{CONFIGMAPS}?limit=2", save="page")),
    ),
    Case("list page with selector", get(f"{CONFIGMAPS}?limit=1&labelSelector=all"), _THREE),
    Case("get with resourceVersion", get(f"{CONFIGMAPS}/c1?resourceVersion=0"), _THREE),
    Case("get future resourceVersion", get(f"{CONFIGMAPS}/c1?resourceVersion=99999999"), _THREE),
)

_TABLES = (
    Case("table: list", get(CONFIGMAPS, TABLE), _THREE),
    Case(
        "table: only table",
        get(CONFIGMAPS, "application/json;as=Table;v=v1;g=meta.k8s.io"),
        _THREE[:1],
    ),
    Case("table: page", get(f"{CONFIGMAPS}?limit=1", TABLE), _THREE),
    Case("table: get", get(f"{PODS}/p1", TABLE), _TWO_PODS),
    Case("table: not found", get(f"{PODS}/zz", TABLE)),
    Case("table: create", post(CONFIGMAPS, configmap("c1"), TABLE)),
    Case(
        "table: delete", Request("DELETE", f"{CONFIGMAPS}/c1", None, {"Accept": TABLE}), _THREE[:1]
    ),
    Case("table: include nothing", get(f"{CONFIGMAPS}?includeObject=None", TABLE), _THREE[:1]),
    Case("table: include object", get(f"{CONFIGMAPS}?includeObject=Object", TABLE), _THREE[:1]),
    Case("table: bad include", get(f"{CONFIGMAPS}?includeObject=Some", TABLE), _THREE[:1]),
    Case("table: empty", get(CONFIGMAPS, TABLE)),
    Case("table: unknown version", get(CONFIGMAPS, "application/json;as=Table;v=v9;g=meta.k8s.io")),
    Case("table: watch", watch(f"{CONFIGMAPS}?{_SINCE}", 3, TABLE), _THREE),
    Case(
        "table: of a scale",
        get(f"{DEPLOYMENTS}/d/scale", TABLE),
        (post(DEPLOYMENTS, deployment("d")),),
    ),
    Case(
        "table: of a review",
        post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
            TABLE,
        ),
    ),
    Case("partial: list", get(CONFIGMAPS, PARTIAL_LIST), _THREE[:2]),
    Case("partial: get", get(f"{CONFIGMAPS}/c1", PARTIAL), _THREE[:1]),
    Case("partial: list asked for one", get(CONFIGMAPS, PARTIAL), _THREE[:1]),
    Case("partial: watch", watch(f"{CONFIGMAPS}?{_SINCE}", 2, PARTIAL), _THREE[:2]),
    Case(
        "partial: patch",
        Request(
            "PATCH",
            f"{CONFIGMAPS}/c1",
            {"metadata": {"labels": {"x": "y"}}},
            {"Accept": PARTIAL, "Content-Type": "application/merge-patch+json"},
        ),
        _THREE[:1],
    ),
)

_CHANGE = (
    patch(f"{CONFIGMAPS}/c1", {"data": {"x": "1"}}),
    patch(f"{CONFIGMAPS}/c1", {"metadata": {"labels": {"all": None}}}),
    patch(f"{CONFIGMAPS}/c1", {"data": {"x": "2"}}),
    patch(f"{CONFIGMAPS}/c1", {"metadata": {"labels": {"all": ""}}}),
    delete(f"{CONFIGMAPS}/c1"),
)
_LIST_BY_WATCH = (
    "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    "&allowWatchBookmarks=true&timeoutSeconds=3"
)

_WATCHES = (
    Case("watch: from the beginning", watch("/api/v1/configmaps?resourceVersion=1", 1)),
    Case("watch: future resourceVersion", watch(f"{CONFIGMAPS}?resourceVersion=99999999", 1)),
    Case("watch: bad resourceVersion", watch(f"{CONFIGMAPS}?resourceVersion=abc")),
    Case("watch: current state", watch(CONFIGMAPS, 3), _THREE),
    Case("watch: resourceVersion 0", watch(f"{CONFIGMAPS}?resourceVersion=0", 3), _THREE),
    Case("watch: history", watch(f"{CONFIGMAPS}?{_SINCE}", 6), (_THREE[0], *_CHANGE)),
    Case(
        "watch: selector transitions",
        watch(f"{CONFIGMAPS}?{_SINCE}&labelSelector=all", 5),
        (_THREE[0], *_CHANGE),
    ),
    Case(
        "watch: field selector transitions",
        watch(f"{PODS}?{_SINCE}&fieldSelector=spec.nodeName%3D", 3),
        _TWO_PODS,
    ),
    Case(
        "watch: one by name",
        watch(f"{CONFIGMAPS}?{_SINCE}&fieldSelector=metadata.name%3Dc2", 1),
        _THREE,
    ),
    Case("watch: one by path", get(f"{CONFIGMAPS}/c1?watch=1&timeoutSeconds=1"), _THREE),
    Case(
        "watch: old style path",
        get("/api/v1/watch/namespaces/{ns}/configmaps?timeoutSeconds=1", events=3),
        _THREE,
    ),
    Case(
        "watch: pod life",
        watch(f"{PODS}?{_SINCE}", 6),
        (*_TWO_PODS, delete(f"{PODS}/p1"), delete(f"{PODS}/p1?gracePeriodSeconds=0")),
    ),
    Case(
        "watch: bookmark before the end",
        watch(f"{CONFIGMAPS}?allowWatchBookmarks=true", 4, timeout=4),
        _THREE[:1],
    ),
    Case(
        "watch: true as text",
        get(f"{CONFIGMAPS}?watch=True&timeoutSeconds=1", events=1),
        _THREE[:1],
    ),
    Case(
        "watch: finalizer life",
        watch(f"{CONFIGMAPS}?{_SINCE}", 3),
        (
            post(CONFIGMAPS, configmap("c1", metadata={"finalizers": ["a.example.com/1"]})),
            delete(f"{CONFIGMAPS}/c1"),
            patch(f"{CONFIGMAPS}/c1", {"metadata": {"finalizers": None}}),
        ),
    ),
    Case(
        "watch: last finalizer and a change",
        watch(f"{CONFIGMAPS}?{_SINCE}", 3),
        (
            post(CONFIGMAPS, configmap("c1", metadata={"finalizers": ["a.example.com/1"]})),
            delete(f"{CONFIGMAPS}/c1"),
            patch(f"{CONFIGMAPS}/c1", {"metadata": {"finalizers": None}, "data": {"z": "1"}}),
        ),
    ),
    Case("watch list", get(f"{CONFIGMAPS}{_LIST_BY_WATCH}", events=4), _THREE),
    Case("watch list of nothing", get(f"{CONFIGMAPS}{_LIST_BY_WATCH}", events=1)),
    Case(
        "watch list without bookmarks",
        get(
            f"{CONFIGMAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            "&timeoutSeconds=1",
            events=3,
        ),
        _THREE,
    ),
    Case("watch list without match", get(f"{CONFIGMAPS}?watch=1&sendInitialEvents=true")),
    Case(
        "watch list without watch",
        get(f"{CONFIGMAPS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
    ),
    Case("watch list as table", get(f"{CONFIGMAPS}{_LIST_BY_WATCH}", TABLE, events=4), _THREE),
    Case(
        "watch match without initial events",
        get(f"{CONFIGMAPS}?watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1"),
    ),
    Case(
        "watch no initial events",
        get(
            f"{CONFIGMAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
            "&allowWatchBookmarks=true&timeoutSeconds=1",
            events=1,
        ),
        _THREE,
    ),
    Case("watch bad accept", get(f"{CONFIGMAPS}?watch=1&timeoutSeconds=1", "text/csv")),
    Case("watch bad timeout", get(f"{CONFIGMAPS}?watch=1&timeoutSeconds=x")),
)

_EVENTS = f"{NS}/events"
_NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
_ABOUT = {"kind": "Pod", "namespace": "{ns}", "name": "p", "uid": "u"}
_OLD = obj(
    "v1",
    "Event",
    "e1",
    involvedObject=_ABOUT,
    reason="Pulled",
    message="done",
    type="Normal",
    source={"component": "kubelet"},
    count=1,
    firstTimestamp="2026-01-01T00:00:00Z",
    lastTimestamp="2026-01-01T00:00:00Z",
)
_NEW = obj(
    "events.k8s.io/v1",
    "Event",
    "e2",
    regarding=_ABOUT,
    reason="Scheduled",
    note="Assigned",
    type="Normal",
    action="Binding",
    reportingController="s/s",
    reportingInstance="s-0",
    eventTime="2026-01-01T00:00:00.000000Z",
)

_TWO_GROUPS = (
    Case("events: created in core", post(_EVENTS, _OLD)),
    Case("events: created in the new group", post(_NEW_EVENTS, _NEW)),
    Case(
        "events: core one read in the new group", get(f"{_NEW_EVENTS}/e1"), (post(_EVENTS, _OLD),)
    ),
    Case("events: new one read in core", get(f"{_EVENTS}/e2"), (post(_NEW_EVENTS, _NEW),)),
    Case(
        "events: field selector",
        get(
            f"{_EVENTS}?fieldSelector=involvedObject.name%3Dp,involvedObject.uid%3Du,type!%3DWarning"
        ),
        (post(_EVENTS, _OLD), post(_NEW_EVENTS, _NEW)),
    ),
    Case(
        "events: field selector of the new group",
        get(f"{_NEW_EVENTS}?fieldSelector=regarding.name%3Dp"),
        (post(_EVENTS, _OLD),),
    ),
    Case(
        "events: new without eventTime",
        post(_NEW_EVENTS, {k: v for k, v in _NEW.items() if k not in ("eventTime", "action")}),
    ),
    Case(
        "events: other namespace",
        post(_EVENTS, _OLD | {"involvedObject": _ABOUT | {"namespace": "other"}}),
    ),
    Case(
        "events: new, changed",
        patch(f"{_NEW_EVENTS}/e2", {"reason": "Other"}),
        (post(_NEW_EVENTS, _NEW),),
    ),
    Case(
        "events: series",
        patch(
            f"{_NEW_EVENTS}/e2",
            {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}},
        ),
        (post(_NEW_EVENTS, _NEW),),
    ),
)

CASES = (*_SELECTORS, *_LISTS, *_TABLES, *_WATCHES, *_TWO_GROUPS)
