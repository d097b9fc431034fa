"""What our server says that it serves is what the real one says of the same kinds, over the wire.

Left out on both sides: groups and kinds that only one of them serves, and the proxies.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.record.case import AGGREGATED, Json
from tests.conformance.record.client import Client
from tests.conformance.record.normalise import normalise
from tests.conformance.served import KINDS

_FIXTURE = Path(__file__).parent / "fixtures" / "discovery.json"
RECORDED: dict[str, Any] = json.loads(_FIXTURE.read_bytes())
GROUPS = {kind.group for kind in KINDS}
SERVED = {(kind.group, kind.plural) for kind in KINDS}
_ONLY_OURS = "metrics.k8s.io"


def _group_of(path: str) -> str:
    parts = path.split("/")
    return parts[2] if parts[1] == "apis" and len(parts) > 2 else ""


def _rows(group: str, rows: list[Json], key: str) -> list[Json]:
    kept = []
    for row in rows:
        resource, _, subresource = row[key].partition("/")
        if (group, resource) in SERVED and subresource != "proxy":
            inner = [s for s in row.get("subresources", ()) if s["subresource"] != "proxy"]
            kept.append({**row, "subresources": inner} if inner else _without(row))
    return kept


def _without(row: Json) -> Json:
    return {key: value for key, value in row.items() if key != "subresources"}


def _legacy(path: str, document: Json) -> Json:
    if "groups" in document:
        named = [group for group in document["groups"] if group["name"] in GROUPS - {_ONLY_OURS}]
        return {**document, "groups": named}
    if "resources" in document:
        return {**document, "resources": _rows(_group_of(path), document["resources"], "name")}
    return document


def _aggregated(document: Json) -> Json:
    items = []
    for group in document["items"]:
        name = group["metadata"].get("name", "")
        if name in GROUPS - {_ONLY_OURS}:
            versions = [
                {**version, "resources": _rows(name, version["resources"], "resource")}
                for version in group["versions"]
            ]
            items.append({**group, "versions": versions})
    return {**document, "items": items}


@pytest.mark.parametrize("path", [p for p in RECORDED["legacy"] if _group_of(p) in GROUPS])
def test_a_legacy_document_is_as_recorded(path: str, client: Client) -> None:
    found = client.send("GET", path).response
    expected = _legacy(path, RECORDED["legacy"][path])
    assert normalise(_legacy(path, found)) == normalise(expected)


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_an_aggregated_document_is_as_recorded(path: str, client: Client) -> None:
    found = client.send("GET", path, headers={"Accept": AGGREGATED}).response
    assert _aggregated(found) == _aggregated(RECORDED["aggregated"][path])


def test_the_version_names_the_release_and_us(client: Client) -> None:
    found, real = client.send("GET", "/version").response, RECORDED["version"]
    assert (found["major"], found["minor"]) == (real["major"], real["minor"])
    assert found["gitVersion"] == f"{real['gitVersion']}+localkube"
