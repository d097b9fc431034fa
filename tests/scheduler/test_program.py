"""The scheduler program over HTTPS, on a local cluster that has a scheduler; and its commands."""

import asyncio
import contextlib
import re
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.contract.names import LEASE_NAMESPACE, SCHEDULER_LEASE
from gpupool.health import Address
from gpupool.scheduler.elected import LEASE
from gpupool.scheduler.program import ProgramSettings, run_scheduler
from gpupool.testing import Cluster
from kubeclient.client import Headers, Kube, Query
from kubeclient.credentials import find_access
from kubeclient.https import connected
from kubeclient.lease import Candidacy
from kubeclient.resources import LEASES, NODES, PODS
from tests.scheduler.world import POLICY, add_node, gpu_pod

NAME = "gpupool-scheduler-of-a-test"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=[]) as running:
        yield running


@contextlib.asynccontextmanager
async def client(cluster: Cluster) -> AsyncIterator[Kube]:
    access = await find_access({}, kubeconfig=str(cluster.kubeconfig))
    async with connected(access, "test") as kube:
        yield kube


class AsScheduler:
    """Admission lets only the scheduler choose cards for pods."""

    def __init__(self, kube: Kube) -> None:
        self._transport = kube._transport

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        headers = {**headers, "impersonate-user": "system:kube-scheduler"}
        return await self._transport.call(method, path, query=query, headers=headers, body=body)

    def stream(self, path: str, *, query: Query, headers: Headers) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(path, query=query, headers=headers)


@contextlib.asynccontextmanager
async def program(kube: Kube) -> AsyncIterator[int]:
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    settings = ProgramSettings(
        POLICY,
        Candidacy(replace(LEASE, name=NAME), "me", frozenset({NAME}), retry_s=0.1),
        Address("127.0.0.1", 0),
    )
    scheduler = Kube(AsScheduler(kube))
    task = asyncio.create_task(run_scheduler(scheduler, settings, port.set_result))
    try:
        yield await port
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def node_of_pod(kube: Kube, name: str) -> str:
    async with asyncio.timeout(60):
        while True:
            pod = await kube.get(PODS, name, "default")
            if pod["spec"].get("nodeName"):
                return str(pod["spec"]["nodeName"])
            await asyncio.sleep(0.02)


def page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return str(answer.read().decode())


def families(metrics: str) -> set[str]:
    """Names of metrics, without what prometheus-client adds about their age."""
    typed = [line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE ")]
    return {name for name in typed if not name.endswith("_created")}


def documented() -> set[str]:
    docs = (Path(__file__).parent.parent.parent / "docs" / "metrics.md").read_text(encoding="utf-8")
    tables = [line.split("|")[1] for line in docs.splitlines() if line.startswith("| `")]
    names = {name for cell in tables for name in re.findall(r"`([a-z_]+)`", cell)}
    return {n for n in names if n.startswith(("scheduler_", "gpupool_scheduler_", "leader_"))}


async def test_the_scheduler_leads_binds_and_serves_health(cluster: Cluster) -> None:
    async with client(cluster) as kube:
        await add_node(kube, "far", 1)
        async with program(kube) as port:
            await kube.create(PODS, gpu_pod("p", units=2, schedulerName=NAME))
            assert await node_of_pod(kube, "p") == "far"
            assert await asyncio.to_thread(page, port, "/readyz") == "ok"
            metrics = await asyncio.to_thread(page, port, "/metrics")
            for line in (
                f'scheduler_schedule_attempts_total{{profile="{NAME}",result="scheduled"}} 1.0',
                'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1.0',
                'scheduler_queue_incoming_pods_total{event="PodAdd",queue="active"} 1.0',
                f'leader_election_master_status{{name="{SCHEDULER_LEASE}"}} 1.0',
                f'gpupool_scheduler_largest_gang{{cards_per_pod="1",policy="{POLICY}"}} 0.0',
            ):
                assert line in metrics.splitlines(), metrics
            assert families(metrics) == documented()
            lease = await kube.get(LEASES, NAME, "kube-system")
            assert lease["spec"]["holderIdentity"] == "me"
        lease = await kube.get(LEASES, NAME, "kube-system")
        assert not lease["spec"].get("holderIdentity")
        await kube.delete(PODS, "p", "default", options={"gracePeriodSeconds": 0})
        await kube.delete(NODES, "far")


async def test_the_scheduler_inside_a_local_cluster_serves_the_names_of_others(
    cluster: Cluster,
) -> None:
    async with client(cluster) as kube:
        await add_node(kube, "inside", 1)
        lease = Candidacy(LEASE, "me", frozenset({"x"}), retry_s=0.1)
        task = asyncio.create_task(run_scheduler(kube, ProgramSettings(POLICY, lease)))
        try:
            await kube.create(PODS, gpu_pod("of-another", units=2, schedulerName="x"))
            assert await node_of_pod(kube, "of-another") == "inside"
            found = await kube.get(LEASES, SCHEDULER_LEASE, LEASE_NAMESPACE)
            assert found["spec"]["holderIdentity"] == "local-cluster"
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await kube.delete(PODS, "of-another", "default", options={"gracePeriodSeconds": 0})
        await kube.delete(NODES, "inside")


def run(cluster: Cluster, *arguments: str) -> str:
    given = [*arguments, "--kubeconfig", str(cluster.kubeconfig)]
    result = CliRunner().invoke(gpupool, given)
    assert result.exit_code == 0, result.output
    return result.output


def test_explain_and_inspect_show_the_current_state_and_the_next_decision(
    cluster: Cluster, tmp_path: Path
) -> None:
    async def prepare() -> None:
        async with client(cluster) as kube:
            await add_node(kube, "near", 1)
            await kube.create(PODS, gpu_pod("small", units=3))
            await node_of_pod(kube, "small")
            await kube.create(PODS, gpu_pod("large", units=14))

    asyncio.run(prepare())
    small = run(cluster, "explain", "small")
    assert small.startswith("default/small is on node near.\n  container c: card 0 (GPU-near-0), 3")
    large = run(cluster, "explain", "large")
    assert "default/large fits nowhere now." in large
    assert "card 0: 13 of 16 units free, 14 wanted" in large
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(yaml.safe_dump(gpu_pod("planned", units=13)))
    planned = run(cluster, "explain", "-f", str(manifest))
    assert planned.startswith("default/planned would go to node near.")
    assert "3/16" in run(cluster, "inspect")
    assert "small" in run(cluster, "inspect", "-d", "near")


EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("manifest", EXAMPLES, ids=lambda path: str(path.stem))
def test_explain_takes_every_example(cluster: Cluster, manifest: Path) -> None:
    given = ["explain", "-f", str(manifest), "--kubeconfig", str(cluster.kubeconfig)]
    result = CliRunner().invoke(gpupool, given)
    assert result.exit_code == 0, result.output
    assert " fits nowhere now." in result.output or " would go to node " in result.output


TWO_DOCUMENTS = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}], selector: {app: web}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: pause, resources: {limits: {aliyun.com/gpu-mem: 14}}}]
---
{"apiVersion": "v1", "kind": "List", "items": [
\t{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "each"}, "spec":
\t{"template": {"spec": {"containers": [{"name": "c", "image": "pause"}]}}}}]}
"""


def test_explain_reads_all_kinds_of_workloads_from_standard_input(cluster: Cluster) -> None:
    text = TWO_DOCUMENTS.replace("\t", " ")
    given = ["explain", "-f", "-", "--kubeconfig", str(cluster.kubeconfig)]
    result = CliRunner().invoke(gpupool, given, input=text)
    assert result.exit_code == 0, result.output
    assert "A pod of CronJob default/nightly fits nowhere now." in result.output
    assert "A pod of DaemonSet default/each " in result.output


def test_explain_shows_what_the_api_server_refuses_and_goes_on(cluster: Cluster) -> None:
    bad = gpu_pod("bad", units=1)
    bad["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"] = "1.5"
    given = ["explain", "-f", "-", "--kubeconfig", str(cluster.kubeconfig)]
    text = yaml.safe_dump_all([bad, gpu_pod("good", units=1)])
    result = CliRunner().invoke(gpupool, given, input=text)
    assert result.exit_code == 1
    assert "default/bad would be refused: " in result.output
    assert "aliyun.com/gpu-mem" in result.output
    assert "\ndefault/good " in result.output, "whatever nodes there are"


def test_explain_names_in_a_refusal_what_the_manifest_names(cluster: Cluster) -> None:
    """The dry run gives the pod a name of its own, which nobody has written."""
    pod = gpu_pod("nameless", units=1)
    del pod["spec"]["containers"][0]["image"]
    given = ["explain", "-f", "-", "--kubeconfig", str(cluster.kubeconfig)]
    result = CliRunner().invoke(gpupool, given, input=yaml.safe_dump(pod))
    assert 'default/nameless would be refused: Pod "nameless" is invalid: ' in result.output


def test_explain_asks_whether_another_resource_was_meant(cluster: Cluster) -> None:
    pod = gpu_pod("odd", units=1)
    pod["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpus": "1"}
    given = ["explain", "-f", "-", "--kubeconfig", str(cluster.kubeconfig)]
    result = CliRunner().invoke(gpupool, given, input=yaml.safe_dump(pod))
    assert "default/odd fits nowhere now." in result.output
    assert "no node has nvidia.com/gpus" in result.output
    assert "did you mean nvidia.com/gpu?" in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "standard input: wanted a Pod or a workload such as a Deployment, found nothing."),
        ("kind: Service\nspec: {type: x}", "found Service."),
        ("- 1", "found a value that is no object."),
        ("kind: Pod\nspec:", "found Pod without containers."),
        ("a: [", "standard input:2:1: not valid YAML"),
        ("kind: Pod\nspec: {containers: 3}\nmetadata: 3", "default/pod would be refused: "),
    ],
)
def test_explain_says_what_is_wrong_with_a_manifest(
    cluster: Cluster, text: str, words: str
) -> None:
    given = ["explain", "-f", "-", "--kubeconfig", str(cluster.kubeconfig)]
    result = CliRunner().invoke(gpupool, given, input=text)
    assert result.exit_code == 1
    assert words in result.output, result.output


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("explain",), "Name a pod, or a manifest"),
        (("explain", "-f", "/nowhere"), "does not exist"),
        (("explain", "x", "--policy", "y"), 'no policy "y"'),
        (("scheduler", "--health-address", "x"), "wanted HOST:PORT"),
        (("scheduler", "--kubeconfig", "/nowhere"), "There is no kubeconfig at /nowhere"),
        (("inspect", "nobody"), 'nodes "nobody" not found'),
    ],
)
def test_bad_options_are_errors_with_a_message(
    cluster: Cluster, arguments: tuple[str, ...], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    result = CliRunner().invoke(gpupool, arguments)
    assert result.exit_code != 0
    assert wanted in result.output
    assert "Traceback" not in result.output
