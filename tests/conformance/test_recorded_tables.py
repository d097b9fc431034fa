"""Objects in every state are printed by our server as the real one printed them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.api_server import api_server
from tests.conformance.record import replay, tables
from tests.conformance.record.case import MERGE, TABLE, Json
from tests.conformance.record.client import Client
from tests.conformance.record.defaults import NAMESPACE
from tests.conformance.record.normalise import normalise
from tests.conformance.record.samples import SAMPLES
from tests.conformance.record.samples.states import STATES
from tests.conformance.served import is_served

_FIXTURE = Path(__file__).parent / "fixtures" / "tables.json"
RECORDED: dict[str, Any] = json.loads(_FIXTURE.read_bytes())
SERVED = [name for name, table in RECORDED.items() if is_served(table["path"])]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The real server had no controllers, so what a quota uses stayed as it was written."""
    with api_server(tmp_path_factory.mktemp("server"), keeps_records=False) as server:
        client = Client(f"https://127.0.0.1:{server.port}", server.token, server.ca)
        yield client
        client.close()


@pytest.fixture(scope="module")
def filled(client: Client) -> Client:
    """A client of a server that holds what the real one held."""
    for step in replay.namespace_steps(NAMESPACE):
        client.send(step.method, step.path, step.body)
    for sample in SAMPLES:
        body = json.loads(json.dumps(sample.body).replace("{ns}", NAMESPACE))
        client.send("POST", sample.path.replace("{ns}", NAMESPACE), body)
    for state in STATES:
        tables.reach(client, state)
    for name in _JUDGED:
        _judge(client, RECORDED[name])
    return client


# What kube-apiserver itself writes into their status is for programs beside the server here.
_JUDGED = ("apiregistration.k8s.io/apiservices", "flowcontrol.apiserver.k8s.io/flowschemas")


def _judge(client: Client, table: Json) -> None:
    for row in table["rows"]:
        thing = row["object"]
        path = f"{table['path']}/{thing['metadata']['name']}/status"
        answer = client.send("PATCH", path, {"status": thing["status"]}, {"Content-Type": MERGE})
        assert answer.status == 200, answer.response


def _own(rows: list[Json]) -> dict[tuple[str, str], Json]:
    """Rows of what was sent, by namespace and name; not of what a server has by itself."""
    found = {}
    for row in rows:
        metadata = row["object"]["metadata"]
        if not tables.is_built_in(row["object"]) and metadata.get("namespace") in _SENT:
            key = (metadata.get("namespace", ""), metadata["name"])
            found[key] = normalise({name: row.get(name) for name in ("cells", "conditions")})
    return found


_SENT = (None, NAMESPACE)


@pytest.mark.parametrize("name", SERVED)
def test_a_resource_is_printed_as_recorded(name: str, filled: Client) -> None:
    recorded = RECORDED[name]
    url = f"{recorded['path']}?includeObject=Object&limit=500"
    table = filled.send("GET", url, headers={"Accept": TABLE}).response
    assert table["columnDefinitions"] == recorded["columns"]
    expected, actual = _own(recorded["rows"]), _own(table["rows"])
    assert {key: actual.get(key) for key in expected} == expected
