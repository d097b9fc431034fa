"""Records what the server says it serves, in both forms that clients ask for."""

from __future__ import annotations

from typing import Any

from tests.conformance.record.case import AGGREGATED
from tests.conformance.record.client import Client


def record(client: Client) -> dict[str, Any]:
    """`aggregated` and `legacy` by path, and /version."""
    groups = client.send("GET", "/apis").response
    versions = [
        f"/apis/{version['groupVersion']}"
        for group in groups["groups"]
        for version in group["versions"]
    ]
    roots = [f"/apis/{group['name']}" for group in groups["groups"]]
    legacy = ["/api", "/api/v1", "/apis", *sorted(roots), *sorted(versions)]
    return {
        "version": client.send("GET", "/version").response,
        "aggregated": {
            path: client.send("GET", path, headers={"Accept": AGGREGATED}).response
            for path in ("/api", "/apis")
        },
        "legacy": {path: client.send("GET", path).response for path in legacy},
    }
