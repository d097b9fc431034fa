"""The API server's /metrics: what it counted is what it was asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from localkube.apiserver.metrics import Metrics
from localkube.apiserver.request import Answer, Reply, Request
from localkube.apiserver.security.access import Access
from tests.conformance.api_server import api_server
from tests.conformance.record.client import Client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    directory: Path = tmp_path_factory.mktemp("server")
    with api_server(directory, keeps_records=False) as server:
        client = Client(f"https://127.0.0.1:{server.port}", server.token, server.ca)
        yield client
        client.close()


def counted(text: str, **labels: str) -> float:
    """The sum over all series of apiserver_request_total that have these labels."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "apiserver_request_total" and labels.items() <= sample.labels.items()
    )


def asked(client: Client, **labels: str) -> float:
    return counted(client.send("GET", "/metrics").response, **labels)


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("method", "path", "body", "labels"),
    [
        ("GET", CONFIG_MAPS, None, {"verb": "LIST", "resource": "configmaps", "code": "200"}),
        (
            "GET",
            f"{CONFIG_MAPS}/none",
            None,
            {"verb": "GET", "resource": "configmaps", "code": "404"},
        ),
        (
            "POST",
            CONFIG_MAPS,
            {"metadata": {"name": "A B"}},
            {"verb": "POST", "resource": "configmaps", "code": "422"},
        ),
        (
            "GET",
            "/apis/apps/v1/deployments",
            None,
            {"verb": "LIST", "group": "apps", "resource": "deployments", "code": "200"},
        ),
        ("GET", "/nothing", None, {"verb": "GET", "group": "", "resource": "", "code": "404"}),
        ("TRACE", "/api", None, {"verb": "OTHER", "resource": "", "code": "405"}),
        (
            "GET",
            "/api/v1/namespaces/default/such-a-thing",
            None,
            {"verb": "GET", "resource": "", "code": "404"},
        ),
    ],
)
def test_a_request_is_counted_by_verb_resource_and_code(
    client: Client, method: str, path: str, body: object, labels: dict[str, str]
) -> None:
    before = asked(client, **labels)
    client.send(method, path, body)
    assert asked(client, **labels) == before + 1


def test_a_request_without_credentials_is_counted(client: Client) -> None:
    labels = {"verb": "GET", "resource": "", "code": "401"}
    before = asked(client, **labels)
    client.send("GET", CONFIG_MAPS, headers={"Authorization": "Bearer no"}, anonymous=True)
    assert asked(client, **labels) == before + 1


def test_a_watch_is_counted_when_it_begins(client: Client) -> None:
    labels = {"verb": "WATCH", "resource": "namespaces", "code": "200"}
    before = asked(client, **labels)
    client.send("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1", events=1)
    assert asked(client, **labels) == before + 1


def test_requests_from_inside_the_process_are_counted(client: Client) -> None:
    """The server's own first objects are written by a client inside the process."""
    assert asked(client, verb="POST", resource="clusterroles", code="201") > 10


def test_stored_objects_are_told_by_resource(client: Client) -> None:
    text = client.send("GET", "/metrics").response
    (family,) = [
        each
        for each in text_string_to_metric_families(text)
        if each.name == "apiserver_storage_objects"
    ]
    found = {sample.labels["resource"]: sample.value for sample in family.samples}
    assert found["namespaces"] >= 4


class NoStore:
    def counts(self) -> dict[str, int]:
        return {}


async def test_a_bug_is_counted_as_a_500_and_still_raised() -> None:
    metrics = Metrics(NoStore())

    async def broken(request: Request) -> Reply:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await metrics.counted(broken)(Request("GET", "/api"))
    assert counted(metrics.text().decode(), verb="GET", code="500") == 1


async def test_the_number_of_series_is_bounded() -> None:
    """Whoever may define custom resources can define many; the server's memory is not theirs."""
    metrics = Metrics(NoStore(), most_series=3)

    async def answer(request: Request) -> Reply:
        request.access = Access("get", resource=request.path)
        return Answer(200)

    handle = metrics.counted(answer)
    for number in range(5):
        await handle(Request("GET", f"kind{number}"))
    text = metrics.text().decode()
    assert counted(text) == 5
    assert counted(text, resource="kind2") == 1
    assert counted(text, resource="other", verb="OTHER") == 2
