"""A real Prometheus scrapes a cluster, and every expression of rules and dashboards has data.

Debian's `prometheus` and `promtool`. Agents are reached by kubectl port-forward, as on a machine
without a route to pods; the scheduler over HTTPS with a token, as in a cluster.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from gpupool.health import Address
from gpupool.scheduler.elected import LEASE
from gpupool.scheduler.program import ProgramSettings, run_scheduler
from gpupool.testing import Cluster
from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.https import connected
from kubeclient.lease import Candidacy
from kubeclient.resources import PODS
from testbed.find_kubectl import ensure_kubectl
from testbed.processes import Child, answers, free_port
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import Kubectl, eventually
from tests.prometheus.chart_rules import panel_expressions, program, rules
from tests.scheduler.test_program import AsScheduler
from tests.scheduler.world import POLICY

pytestmark = pytest.mark.clients

ISOLATED = {"cgpu.disable.isolation": "false"}
AGENTS = "gpushare-device-plugin-ds"
NAME = "gpupool-scheduler-of-prometheus"
PATIENCE_S = 240.0
# It takes 3/15 of the card that it sees. With isolation, that is its share: 3/15 of 16130 MiB.
TAKEN_MIB = 3226 * 3 // 15
# A V100, and a card that tells what its tensor cores do.
H100 = {"name": "NVIDIA H100 80GB HBM3", "memoryMiB": 81559}
MACHINES = {
    "gpuModels": [H100],
    "instanceTypes": [
        {
            "name": "hopper",
            "vcpus": 16,
            "memoryGiB": 128,
            "gpus": {"model": H100["name"], "count": 1},
        }
    ],
    "pools": [SHARED_POOLS[0], {**SHARED_POOLS[1], "instanceType": "hopper"}],
}
# What Grafana puts in the place of variables.
VARIABLES = {
    "$__rate_interval": "1m",
    "$datasource": "",
    **dict.fromkeys(("$namespace", "$node", "$pod", "$Hostname", "$gpu"), ".*"),
}
# Of NVIDIA's dashboard 12239, by panel, as it is in the repository of dcgm-exporter (gnetId 12239).
_OF_A_CARD = '{Hostname=~"$Hostname", gpu=~"$gpu"}'
_INSTANCE = "by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)"
NVIDIAS = {
    "GPU Temperature": f"max(DCGM_FI_DEV_GPU_TEMP{_OF_A_CARD}) by (Hostname, gpu, uuid)",
    "GPU Avg. Temp": f"avg(DCGM_FI_DEV_GPU_TEMP{_OF_A_CARD})",
    "GPU Power Usage": f"max(DCGM_FI_DEV_POWER_USAGE{_OF_A_CARD}) by (Hostname, gpu, uuid)",
    "GPU Power Total": f"sum(max(DCGM_FI_DEV_POWER_USAGE{_OF_A_CARD}) by (gpu))",
    "GPU SM Clocks": f"max(DCGM_FI_DEV_SM_CLOCK{_OF_A_CARD} * 1000000) by (Hostname, UUID, gpu)",
    "GPU Utilization": f"max(DCGM_FI_PROF_GR_ENGINE_ACTIVE{_OF_A_CARD}) {_INSTANCE}",
    "GPU Framebuffer Mem Used": f"max(DCGM_FI_DEV_FB_USED{_OF_A_CARD}) {_INSTANCE}",
    "Tensor Core Utilization": f"max(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{_OF_A_CARD}) {_INSTANCE}",
    # Of its older revisions.
    "GPU Utilization before 2.0": f"DCGM_FI_DEV_GPU_UTIL{_OF_A_CARD}",
}
# Its variables: label_values(series, label).
NVIDIAS_VARIABLES = {
    "Hostname": "DCGM_FI_DEV_FB_FREE",
    "gpu": 'DCGM_FI_DEV_FB_FREE{Hostname=~"$Hostname"}',
}


def filled(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def gpu_pod(name: str, units: int, image: str, **more: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image,
        "resources": {"limits": {"aliyun.com/gpu-mem": units}},
    }
    spec = {"schedulerName": NAME, "containers": [container], **more}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@contextlib.asynccontextmanager
async def scheduling(kube: Kube, port: int) -> AsyncIterator[None]:
    candidacy = Candidacy(replace(LEASE, name=NAME), "me", frozenset({NAME}), retry_s=0.1)
    settings = ProgramSettings(POLICY, candidacy, scrapers=Address("127.0.0.1", port))
    task = asyncio.create_task(run_scheduler(Kube(AsScheduler(kube)), settings))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def agents_of(kubectl: Kubectl) -> list[str]:
    """The pods of both, once they run."""
    label = f"--selector=name={AGENTS}"
    found = eventually(lambda: (names := kubectl.names("pods", label))[1:] and names)
    kubectl.wait("condition=Ready", *(f"pod/{name}" for name in found))
    return found


def forwarded(kubectl: Kubectl, pod: str, stack: contextlib.ExitStack) -> int:
    """A port of this machine at which the agent answers. kubectl ends where a program does not
    listen yet; then it is started again."""

    def port() -> int:
        with contextlib.ExitStack() as attempt:
            kubectl_runs = attempt.enter_context(kubectl.start("port-forward", pod, ":readings"))
            said = kubectl_runs.shows("Forwarding from 127.0.0.1:")
            found = int(said.partition("127.0.0.1:")[2].partition(" ")[0])
            if not answers(f"http://127.0.0.1:{found}/metrics"):
                return 0
            stack.enter_context(attempt.pop_all())
            return found

    return eventually(port)


def scrape_config(cluster: Cluster, scheduler: int, agents: list[int]) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {
                "job_name": "gpupool-agent",
                "honor_labels": True,
                "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in agents]}],
            },
            {
                "job_name": "gpupool-scheduler",
                "scheme": "https",
                "honor_labels": True,
                "tls_config": {"insecure_skip_verify": True},
                "authorization": {"credentials": cluster.token},
                "static_configs": [{"targets": [f"127.0.0.1:{scheduler}"]}],
            },
        ],
    }


class Prometheus:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def samples(self, expression: str) -> list[Any]:
        """Raises AssertionError for an expression that is wrong."""
        async with self._session.get(
            "/api/v1/query", params={"query": filled(expression)}
        ) as answer:
            document = await answer.json()
            assert document["status"] == "success", (expression, document)
            found: list[Any] = document["data"]["result"]
            return found

    async def label_values(self, series: str, label: str) -> list[str]:
        """As Grafana asks for the values of a variable."""
        asked = {"match[]": filled(series)}
        async with self._session.get(f"/api/v1/label/{label}/values", params=asked) as answer:
            found: list[str] = (await answer.json())["data"]
            return found

    async def wait_for(self, wanted: dict[str, str]) -> None:
        """Until each expression has data. Fails with those that have none."""
        left = dict(wanted)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while left:
                    for where, expression in list(left.items()):
                        # It answers in other words while it starts.
                        with contextlib.suppress(aiohttp.ClientError):
                            if await self.samples(expression):
                                del left[where]
                    await asyncio.sleep(0.5)
        except TimeoutError:
            raise AssertionError(f"without data: {left}\n{await self.targets()}") from None

    async def targets(self) -> str:
        """How its last look at each of them ended."""
        async with self._session.get("/api/v1/targets") as answer:
            found = (await answer.json())["data"]["activeTargets"]
        return "\n".join(
            f"{each['scrapeUrl']}: {each['health']} {each['lastError']}" for each in found
        )


@pytest.mark.kubectl
@pytest.mark.timeout(900)
async def test_every_expression_has_data(tmp_path: Path) -> None:
    server, client = program("prometheus"), ensure_kubectl()
    if client is None:
        pytest.skip("NO KUBECTL: rules and dashboards were not tried on a cluster.")
    # An alert that would need two hours is tried with the first second.
    spec = rules()
    text = yaml.safe_dump(spec).replace("> 7200", "> 0").replace("> 900", "> 0")
    (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
    recorded = {rule["record"]: rule["record"] for rule in spec["groups"][0]["rules"]}
    panels = {f"{where}: {text}": text for where, text in panel_expressions()}
    alerts = {name: f'ALERTS{{alertname="{name}"}}' for name in ("GpuPodIdle", "GpuPodsWaiting")}
    wanted = recorded | panels | alerts | NVIDIAS
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(Cluster(config=MACHINES))
        access = await find_access({}, kubeconfig=str(cluster.kubeconfig))
        kube = await stack.enter_async_context(connected(access, "test"))
        kubectl = Kubectl(client, cluster.kubeconfig, tmp_path, "kube-system")
        scheduler, at = free_port(), free_port()
        await stack.enter_async_context(scheduling(kube, scheduler))
        for made in (
            gpu_pod("taker", 3, "cheyang/gpu-player:v2", nodeSelector=ISOLATED),
            gpu_pod("idle", 2, "pause"),
            gpu_pod("waiting", 2, "pause", nodeSelector={"no": "node"}),
        ):
            await kube.create(PODS, made)
        agents = await asyncio.to_thread(agents_of, kubectl)
        forwards = stack.enter_context(contextlib.ExitStack())
        ports = [await asyncio.to_thread(forwarded, kubectl, pod, forwards) for pod in agents]
        config = scrape_config(cluster, scheduler, ports)
        (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        flags = (
            f"--config.file={tmp_path / 'prometheus.yaml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{at}",
        )
        scraping = Child("prometheus", [server, *flags], tmp_path / "prometheus.log")
        stack.callback(scraping.stop)
        session = await stack.enter_async_context(aiohttp.ClientSession(f"http://127.0.0.1:{at}"))
        prometheus = Prometheus(session)
        agents_seen = "count(count by (Hostname) (DCGM_FI_DEV_FB_FREE)) == 2"
        pods_seen = "count(count by (pod) (gpupool_container_memory_request_bytes)) == 2"
        wanted |= {"both agents": agents_seen, "both pods": pods_seen}
        await prometheus.wait_for(wanted)
        shown = {
            label: await prometheus.label_values(series, label)
            for label, series in NVIDIAS_VARIABLES.items()
        }
        assert len(shown["Hostname"]) == 2
        assert shown["gpu"] == ["0"]
        held = f'DCGM_FI_DEV_FB_USED{{pod="taker",namespace="default"}} == {TAKEN_MIB}'
        await prometheus.wait_for({"what the taker holds": held})
        pods = await prometheus.samples("count by (pod) (gpupool_container_memory_request_bytes)")
        assert {each["metric"]["pod"] for each in pods} == {"taker", "idle"}
