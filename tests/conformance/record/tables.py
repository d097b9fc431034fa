"""Records the columns that the server prints for each resource, and rows beside their objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.conformance.record import defaults
from tests.conformance.record.case import MERGE, TABLE, Json
from tests.conformance.record.client import Client
from tests.conformance.record.samples.states import STATES, State
from tests.conformance.served import is_served

_ROWS = 500
_SAMPLES = ".example.com"  # groups of the sample custom resources
_MANY = 30
_MARKS = {
    "kubernetes.io/bootstrapping",
    "apiserver.kubernetes.io/identity",  # the server's own lease, which tells the machine's name
    "kube-aggregator.kubernetes.io/automanaged",
    "apf.kubernetes.io/autoupdate-spec",
}


def record(client: Client) -> dict[str, Any]:
    """`path`, `columns` and `rows` by group/resource ("/pods" for the core group)."""
    defaults.record(client)
    for state in STATES:
        reach(client, state)
    return {
        f"{group}/{name}": _table(client, path) for group, name, path in sorted(_listable(client))
    }


def reach(client: Client, state: State) -> None:
    created = client.send("POST", state.path, state.body)
    if created.status not in (201, 409):
        raise ValueError(f"{state.path}: {created.status}: {created.response}")
    name = state.body["metadata"]["name"]
    if state.status is not None:
        answer = client.send(
            "PATCH",
            f"{state.path}/{name}/status",
            {"status": state.status},
            {"Content-Type": MERGE},
        )
        if answer.status != 200:
            raise ValueError(f"{name}: {answer.status}: {answer.response}")
    if state.deleted:
        client.send("DELETE", f"{state.path}/{name}")


def _listable(client: Client) -> Iterator[tuple[str, str, str]]:
    groups = client.send("GET", "/apis").response["groups"]
    prefixes = [("", "/api/v1")]
    prefixes += [
        (group["name"], f"/apis/{group['preferredVersion']['groupVersion']}") for group in groups
    ]
    for group, prefix in prefixes:
        answer = client.send("GET", prefix)
        if answer.status != 200:  # registered by a sample, and answered by nobody
            continue
        for resource in answer.response["resources"]:
            path = f"{prefix}/{resource['name']}"
            if "list" in resource["verbs"] and (is_served(path) or group.endswith(_SAMPLES)):
                yield group, resource["name"], path


def _table(client: Client, path: str) -> dict[str, Any]:
    url = f"{path}?includeObject=Object&limit={_ROWS}"
    table: Json = client.send("GET", url, headers={"Accept": TABLE}).response
    for row in table["rows"]:
        # Half of each object, and no column shows it.
        row["object"]["metadata"].pop("managedFields", None)
    own = [row for row in table["rows"] if not is_built_in(row["object"])]
    if len(own) > _MANY:
        # Samples of pods are many and print alike; the states are what the printer is about.
        own = [row for row in own if row["object"]["metadata"]["name"].startswith("state-")]
    return {
        "path": path,
        "columns": table["columnDefinitions"],
        # The server's own objects only where nothing else shows what a row looks like.
        "rows": own or table["rows"][:2],
    }


def is_built_in(thing: Json) -> bool:
    metadata = thing["metadata"]
    marks = metadata.get("labels", {}).keys() | metadata.get("annotations", {}).keys()
    marked = _MARKS & marks
    return bool(marked) or metadata["name"].startswith("system:")
