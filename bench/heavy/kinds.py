"""Custom kinds, large objects of other kinds, and pages."""

from bench.heavy.bodies import (
    BIG_MAP,
    CONFIGMAPS,
    CORE,
    CRDS,
    DRY,
    TABLE,
    YAML,
    Heavy,
    Named,
    choices,
    crd_body,
    custom_body,
    deep_schema,
    map_body,
    review_body,
    role_body,
    service_body,
    wide_schema,
)


def kinds() -> Named:
    yield from _definitions()
    yield from _kept()
    yield from _others()


def _definitions() -> Named:
    crds = f"{CRDS}{DRY}"
    yield (
        "CRD of 40,000 properties",
        lambda: Heavy("POST", crds, crd_body("wide", wide_schema(40_000))),
    )
    yield "CRD of 90 levels", lambda: Heavy("POST", crds, crd_body("deep", deep_schema(40)))
    yield (
        "CRD of 99,000 choices",
        lambda: Heavy(
            "POST",
            crds,
            crd_body("many", {"type": "string", "enum": [f"e{n}" for n in range(99_000)]}),
        ),
    )
    yield (
        "CRD of 20,000 rules",
        lambda: Heavy(
            "POST",
            crds,
            crd_body(
                "ruled",
                {
                    "type": "object",
                    "x-kubernetes-validations": [{"rule": f"self == {n}"} for n in range(20_000)],
                },
            ),
        ),
    )
    yield (
        "CRD of bad properties",
        lambda: Heavy(
            "POST",
            crds,
            crd_body("bad", {"type": "object", "properties": {f"p{n}": {} for n in range(49_000)}}),
        ),
    )


def _kept() -> Named:
    """In this order: some need what was kept before."""
    wides = "/apis/heavy.test/v1/namespaces/default/wides"
    kept = f"{CONFIGMAPS}/kept"
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    services = f"{CORE}/services"
    for name, crd in (
        ("CRD of 30,000 properties, kept", crd_body("wide", wide_schema(30_000))),
        ("CRD of 90,000 choices, kept", crd_body("many", choices(90_000))),
    ):
        yield name, lambda crd=crd: Heavy("POST", CRDS, crd)  # type: ignore[misc]
    yield "openapi v3 of large kinds", lambda: Heavy("GET", "/openapi/v3/apis/heavy.test/v1")
    yield "openapi v2 with large kinds", lambda: Heavy("GET", "/openapi/v2")
    for name, value in (("object of a large kind", ""), ("object of a large kind, wrong", 1)):
        spec = {f"p{n}": value for n in range(30_000)}
        yield name, lambda spec=spec: Heavy("POST", wides, custom_body(spec))  # type: ignore[misc]
    yield "kept map", lambda: Heavy("POST", CONFIGMAPS, map_body("kept", data=BIG_MAP))
    yield "kept map in YAML", lambda: Heavy("GET", kept, accept=YAML)
    yield "kept map as a table", lambda: Heavy("GET", kept, accept=TABLE)
    yield "kept map, deleted", lambda: Heavy("DELETE", kept)
    yield "role of 14,000 rules, kept", lambda: Heavy("POST", roles, role_body(14_000))
    yield (
        "service of 9,000 ports, kept",
        lambda: Heavy("POST", services, service_body("kept", 9_000)),
    )
    yield (
        "review of 90,000 groups",
        lambda: Heavy(
            "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review_body(90_000)
        ),
    )


def _others() -> Named:
    yield (
        "service of 30,000 ports",
        lambda: Heavy("POST", f"{CORE}/services{DRY}", service_body("heavy", 30_000)),
    )
    yield (
        "role of 14,000 rules",
        lambda: Heavy(
            "POST",
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles{DRY}",
            role_body(14_000),
        ),
    )
    yield (
        "selector of 4 KB",
        lambda: Heavy(
            "GET", "/api/v1/pods?labelSelector=" + ",".join(f"k{n}!%3Dv" for n in range(400))
        ),
    )
    yield (
        "8 KB of commas in a selector",
        lambda: Heavy("GET", "/api/v1/pods?labelSelector=" + "a," * 2000),
    )
    yield "openapi v2", lambda: Heavy("GET", "/openapi/v2")
    yield "openapi v3", lambda: Heavy("GET", "/openapi/v3/api/v1")
    yield "openapi v3 of apps", lambda: Heavy("GET", "/openapi/v3/apis/apps/v1")
    yield "discovery", lambda: Heavy("GET", "/apis")
    yield "metrics", lambda: Heavy("GET", "/metrics")
