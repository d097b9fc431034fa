"""Bad input for a cluster that runs: commands, manifests and kubeconfigs. One cluster for all."""

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpupool.contract.names import ANNOTATION_INVENTORY
from gpupool.testing import Cluster
from tests.cli.bad_input.files import pod
from tests.cli.bad_input.row import Bad
from tests.cli.bad_input.rows_of_cluster import CLUSTER, HINTS, REFUSED, THROUGH_KUBECTL
from tests.cli.test_bad_input import VARIABLES, check, name, run, write_files
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

CARDS, PLAIN = "node-with-cards", "plain-node"
POOLS = (
    {
        "name": "shared",
        "count": 1,
        "instanceType": "ecs.gn6v-c8g1.2xlarge",
        "labels": {"cgpu": "true"},
        "nodeNames": [CARDS],
    },
    {"name": "plain", "count": 1, "instanceType": "ecs.g6.xlarge", "nodeNames": [PLAIN]},
)
needs_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        eventually(lambda: ANNOTATION_INVENTORY in _annotations(running), within_s=120)
        yield running


def _annotations(cluster: Cluster) -> dict[str, str]:
    """Of the node with cards."""
    _, found = call(cluster, "GET", f"/api/v1/nodes/{CARDS}")
    return dict(found["metadata"].get("annotations") or {})


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Path:
    directory = tmp_path_factory.mktemp("bad")
    write_files(directory)
    for file, change in VARIANTS.items():
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        change(config["clusters"][0]["cluster"], config["users"][0]["user"])
        (directory / file).write_text(yaml.safe_dump(config))
    return directory


def _without_ca(server: dict[str, Any], _user: object) -> None:
    for field in ("certificate-authority", "certificate-authority-data"):
        server.pop(field, None)


VARIANTS: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "wrong-token": lambda _server, user: user.update(token="wrong"),
    "no-ca": _without_ca,
    "other-name": lambda server, _user: server.update({"tls-server-name": "other.example"}),
    "plain-http": lambda server, _user: server.update(
        server=server["server"].replace("https", "http")
    ),
    "other-path": lambda server, _user: server.update(server=f"{server['server']}/nowhere"),
}


@pytest.fixture
def there(files: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("GPUPOOL_HOME", str(cluster.directory.parent.parent))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))


def filled(row: Bad, taken: int) -> Bad:
    def fill(text: str) -> str:
        return text.replace("CARDS", CARDS).replace("PLAIN", PLAIN).replace("TAKEN", str(taken))

    return row._replace(line=fill(row.line), words=tuple(map(fill, row.words)))


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("row", CLUSTER, ids=name)
def test_bad_input_for_a_cluster_is_answered_with_a_message(row: Bad, taken: int) -> None:
    result = run(filled(row, taken))
    check(filled(row, taken), result.exit_code, result.stderr)
    assert not result.stdout


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("row", REFUSED, ids=name)
def test_explain_says_what_the_server_would_refuse(row: Bad) -> None:
    result = run(row)
    check(row, result.exit_code, result.stdout)
    assert not result.stderr


@needs_kubectl
@pytest.mark.parametrize(("manifest", "words"), THROUGH_KUBECTL)
def test_kubectl_shows_why_a_node_pool_is_refused(
    cluster: Cluster, manifest: str, words: str
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        cluster.kubectl("create", "-f", "-", stdin=manifest)
    print(refusal.value.stderr)  # noqa: T201  # shown by -rP
    assert words in refusal.value.stderr


@needs_kubectl
@pytest.mark.parametrize(("limits", "words"), HINTS)
def test_kubectl_shows_a_hint_for_a_resource_that_no_node_has(
    cluster: Cluster, limits: str, words: str
) -> None:
    command = ("kubectl", "--kubeconfig", str(cluster.kubeconfig))
    done = subprocess.run(
        [*command, "create", "--dry-run=server", "-f", "-"],
        input=pod(limits),
        capture_output=True,
        text=True,
        check=True,
    )
    assert words in done.stderr
