"""Who uses the cards, asked on a real Kubernetes where the chart runs everything.

One pod works, another holds memory and does nothing. Metrics, commands and history must agree with
what nvidia-smi shows in these pods; and each program and each person has the chart's rights only.
"""

import json
import re
import shutil
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from gpupool.cli.main import gpupool
from gpupool.contract.names import RESOURCE_GPU_MEM
from kubeclient.objects import Obj
from testbed import build
from testbed.cluster import Kubernetes
from testbed.installation import NAMESPACE
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes import prometheus
from tests.kubernetes.chart import NODE, install, kubeconfig_of, one_node, token_of
from tests.kubernetes.conftest import LONGEST_S
from tests.kubernetes.pods import gpu_pod
from tests.kubernetes.scrape_jobs import (
    as_in_a_pod,
    discovered,
    documented_job,
    documented_text,
    monitor_jobs,
    scraped_by,
)

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1200)]

AGENT, SCHEDULER = f"https://{NODE}:9446", f"https://{NODE}:10260"
SCRAPER = {"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "monitoring"}
MINUTES_S = 600.0  # the history has a line a minute
# Takes so many MiB of its share, and launches kernels if it is told to.
_PROGRAM = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer, module, kernel = (ctypes.c_void_p() for _ in range(4))
def ok(code): assert code == 0, code
ok(cuda.cuInit(0))
ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
ok(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[1]) << 20)))
ok(cuda.cuModuleLoadData(ctypes.byref(module), b"any"))
ok(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"step"))
print("ready", flush=True)
while sys.argv[2] == "works":
    ok(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None))
    ok(cuda.cuCtxSynchronize())
    time.sleep(0.01)
time.sleep(2**31)
"""
UNITS = {"worker": 4, "sleeper": 3}  # of 15
SHARE_MIB = {"worker": 4301, "sleeper": 3226}
PLACE = {"worker": "research", "sleeper": "sales"}  # their namespaces
TAKES = {"worker": ("1000", "works"), "sleeper": ("500", "sleeps")}


kubernetes = one_node


@pytest.fixture(scope="module")
def released(
    kubernetes: Kubernetes, admin: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> None:
    more = {
        "monitoring": {"enabled": True, "scrapers": [SCRAPER]},
        "history": {"enabled": True},
    }
    file = tmp_path_factory.mktemp("values") / "values.yaml"
    install(kubernetes, admin, file, **more)
    for namespace in ("monitoring", *PLACE.values()):
        admin("create", "namespace", namespace)


def pod_that_takes(name: str) -> Obj:
    pod = gpu_pod(name, RESOURCE_GPU_MEM, UNITS[name])
    pod["spec"]["containers"][0]["command"] = ["python3", "-c", _PROGRAM, *TAKES[name]]
    return pod


def started(kubectl: Kubectl, name: str) -> int:
    """How much the pod uses, as nvidia-smi shows it there."""
    account = ("get", "serviceaccount", "default")
    eventually(lambda: kubectl.run(*account).code == 0, LONGEST_S)
    kubectl.apply(pod_that_takes(name))
    kubectl.wait("condition=Ready", f"pod/{name}", within_s=80)
    eventually(lambda: "ready" in kubectl("logs", name), LONGEST_S)
    shown = re.search(r"(\d+)MiB / +(\d+)MiB", kubectl("exec", name, "--", "nvidia-smi"))
    assert shown is not None
    assert int(shown[2]) == SHARE_MIB[name]
    return int(shown[1])


@pytest.fixture(scope="module")
def used_mib(released: None, admin: Kubectl) -> dict[str, int]:
    """By pod."""
    found = {name: started(admin.within(namespace), name) for name, namespace in PLACE.items()}
    assert all(found[name] >= int(TAKES[name][0]) for name in found)
    return found


def binding(name: str, role: str, account: Obj, scope: str = "") -> Obj:
    """`scope`: "Cluster", or empty for a Role of one namespace."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{scope}RoleBinding",
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": f"{scope}Role",
            "name": role,
        },
        "subjects": [account],
    }


def account(name: str) -> Obj:
    return {"kind": "ServiceAccount", "name": name, "namespace": "default"}


@pytest.fixture(scope="module")
def viewer(released: None, kubernetes: Kubernetes, admin: Kubectl, tmp_path_factory: Any) -> Path:
    """May see pods and nodes, and ask no agent."""
    file = kubeconfig_of(kubernetes, admin, tmp_path_factory.mktemp("viewer"), "viewer")
    admin.apply(binding("test-viewer", "gpupool:viewer", account("viewer"), "Cluster"))
    return file


@pytest.fixture(scope="module")
def analyst(released: None, kubernetes: Kubernetes, admin: Kubectl, tmp_path_factory: Any) -> Path:
    """May also ask the agents and the collector, by the Role that the chart has for it."""
    file = kubeconfig_of(kubernetes, admin, tmp_path_factory.mktemp("analyst"), "analyst")
    admin.apply(binding("test-analyst", "gpupool:viewer", account("analyst"), "Cluster"))
    admin.within(NAMESPACE).apply(binding("test-analyst", "gpupool:readings", account("analyst")))
    return file


# -- metrics ----------------------------------------------------------------------------------


def page(url: str, token: str = "") -> tuple[int, str]:
    """The certificates are the programs' own; scrapers do not check them, either."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60, context=trust) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def value(text: str, metric: str, **labels: str) -> float | None:
    """Of the one series with these labels; None: there is none."""
    found = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == metric and labels.items() <= sample.labels.items()
    ]
    assert len(found) < 2, (metric, labels)
    return found[0] if found else None


def test_a_scraper_is_let_in_by_the_rights_of_the_chart_and_nobody_else(
    used_mib: dict[str, int], admin: Kubectl
) -> None:
    token = token_of(admin, SCRAPER["name"], SCRAPER["namespace"])
    stranger = token_of(admin, "stranger")
    for program in (AGENT, SCHEDULER):
        assert page(f"{program}/metrics")[0] == 401
        assert page(f"{program}/metrics", "no-token-of-this-cluster")[0] == 401
        status, words = page(f"{program}/metrics", stranger)
        assert (status, "system:serviceaccount:default:stranger" in words) == (403, True)
        assert page(f"{program}/metrics", token)[0] == 200
        assert page(f"{program}/healthz")[0] == 200, "health needs no token"
    assert page(f"{AGENT}/readings", token)[0] == 403, "metrics only"
    assert value(page(f"{SCHEDULER}/metrics", token)[1], "leader_election_master_status") == 1


@pytest.mark.parametrize("name", list(PLACE))
def test_metrics_say_what_nvidia_smi_shows_in_the_pod(
    used_mib: dict[str, int], admin: Kubectl, name: str
) -> None:
    token = token_of(admin, SCRAPER["name"], SCRAPER["namespace"])
    mine = {"namespace": PLACE[name], "pod": name, "container": "main"}

    def told(metric: str, **more: str) -> float | None:
        return value(page(f"{AGENT}/metrics", token)[1], metric, **mine, **more)

    used = used_mib[name]
    eventually(lambda: told("DCGM_FI_DEV_FB_USED") == used, LONGEST_S)
    assert told("gpupool_container_memory_used_bytes") == used << 20
    assert told("gpupool_container_memory_peak_bytes") == used << 20
    assert told("gpupool_container_memory_limit_bytes") == SHARE_MIB[name] << 20
    assert told("gpupool_container_isolation", isolation="limiter") == 1
    works = TAKES[name][1] == "works"
    eventually(lambda: bool(told("DCGM_FI_DEV_GPU_UTIL")) is works, LONGEST_S)


def test_a_real_prometheus_scrapes_agents_and_scheduler(
    used_mib: dict[str, int], kubernetes: Kubernetes, admin: Kubectl, tmp_path: Path
) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("NO PROMETHEUS: no real one has scraped real agents. `make prometheus`.")
    token_file = tmp_path / "token"
    token_file.write_text(token_of(admin, SCRAPER["name"], SCRAPER["namespace"]))
    targets = discovered(admin)
    assert len(targets) > 4, "there is something to leave out"
    jobs = [
        scraped_by(job, token_file, targets)
        for job in (documented_job(), *monitor_jobs(kubernetes))
    ]
    config = {"global": {"scrape_interval": "2s"}, "scrape_configs": jobs}
    agents = ["documented", "monitor/gpupool-agent"]
    schedulers = ["documented", "monitor/gpupool-scheduler"]
    with prometheus.running(program, yaml.safe_dump(config), tmp_path) as server:
        both = [(job, "1") for job in sorted([*agents, *schedulers])]
        eventually(lambda: server.answers("up", "job") == both, LONGEST_S)
        for name in PLACE:
            wanted = [(job, str(used_mib[name])) for job in agents]
            eventually(lambda n=name, w=wanted: server.answers(held(n), "job") == w, LONGEST_S)  # type: ignore[misc]
        cards = 'gpupool_scheduler_cards{model="Tesla V100-SXM2-16GB"}'
        told = [(job, "1") for job in schedulers]
        eventually(lambda: server.answers(cards, "job") == told, LONGEST_S)


def held(name: str) -> str:
    return f'DCGM_FI_DEV_FB_USED{{namespace="{PLACE[name]}",pod="{name}"}}'


def test_the_documented_configuration_finds_agents_and_scheduler_as_it_is(
    used_mib: dict[str, int], kubernetes: Kubernetes, admin: Kubectl, tmp_path: Path
) -> None:
    program = build.find("prometheus")
    if program is None:
        pytest.skip(
            "NO PROMETHEUS that discovers pods: docs/metrics.md was not tried as it is. "
            "`python3 testbed/build.py prometheus`"
        )
    inside = admin.within(NAMESPACE)
    inside("create", "role", "discovery", "--verb=get,list,watch", "--resource=pods")
    inside.apply(binding("discovery", "discovery", SCRAPER))
    token = token_of(admin, SCRAPER["name"], SCRAPER["namespace"])
    before = as_in_a_pod(kubernetes, tmp_path / "account", token)
    # Scraped more often than by default, so that the test does not take minutes.
    text = f"global: {{scrape_interval: 2s}}\n{documented_text()}"
    agent, scheduler = (url.removeprefix("https://") for url in (AGENT, SCHEDULER))
    with prometheus.running(str(program), text, tmp_path, before) as server:
        both = sorted([(agent, "1"), (scheduler, "1")])
        eventually(lambda: server.answers("up", "instance") == both, LONGEST_S)
        for name, mib in used_mib.items():
            wanted = [(agent, str(mib))]
            eventually(lambda n=name, w=wanted: server.answers(held(n), "instance") == w, LONGEST_S)  # type: ignore[misc]


# -- commands ---------------------------------------------------------------------------------


def asked(who: Path, *words: str) -> Obj:
    done = CliRunner().invoke(gpupool, [*words, "-o", "json", "--kubeconfig", str(who)])
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    document: Obj = json.loads(done.stdout)
    return document


def test_top_and_gpu_list_show_what_pods_use_now(used_mib: dict[str, int], analyst: Path) -> None:
    def loads() -> dict[str, Obj]:
        return {each["pod"]: each for each in asked(analyst, "top", "pods")["items"]}

    def agrees() -> bool:
        return {name: load["memoryUsedMiB"] for name, load in loads().items()} == used_mib

    eventually(agrees, LONGEST_S)
    eventually(lambda: (loads()["worker"]["smPercent"] or 0) > 0, LONGEST_S)
    found = loads()
    for name, load in found.items():
        assert (load["namespace"], load["node"]) == (PLACE[name], NODE)
        assert load["memoryMiB"] == SHARE_MIB[name]
    assert found["sleeper"]["smPercent"] == 0
    eventually(lambda: loads()["sleeper"]["idleSeconds"] > loads()["worker"]["idleSeconds"])
    [card] = asked(analyst, "gpu", "list")["items"]
    assert card["memoryUsedMiB"] == sum(used_mib.values())
    assert card["memoryFreeMiB"] == 16130 - sum(used_mib.values())
    assert {each["pod"]: each["memoryUsedMiB"] for each in card["usedBy"]} == used_mib
    assert {each["isolation"] for each in card["usedBy"]} == {"limiter"}
    [node] = asked(analyst, "top", "nodes")["items"]
    assert (node["cards"], round(node["givenGpus"], 3)) == (1, round(7 / 15, 3))


def test_report_and_idle_tell_who_used_the_card_and_who_did_not(
    used_mib: dict[str, int], analyst: Path, admin: Kubectl
) -> None:
    def lines() -> dict[str, Obj]:
        """Until the collector has written, the command says that nothing was written."""
        words = ["report", "--since", "30m", "-o", "json", "--kubeconfig", str(analyst)]
        done = CliRunner().invoke(gpupool, words)
        if done.exit_code:
            assert "There is no history to read" in done.stderr, done.output
            return {}
        return {each["name"]: each for each in json.loads(done.stdout)["items"]}

    def is_known() -> bool:
        known = lines()
        return known.keys() == set(PLACE.values()) and bool(
            known["research"]["usedGpuHours"] and known["sales"]["idleGpuHours"]
        )

    def idle() -> list[Obj]:
        items: list[Obj] = asked(analyst, "idle", "--for", "2m")["items"]
        return items

    eventually(is_known, MINUTES_S)
    found = lines()
    for name, namespace in PLACE.items():
        assert found[namespace]["memoryPeakMiB"] == used_mib[name]
    assert found["sales"]["usedGpuHours"] == 0
    # Known is what is from the first sample on; before it, nobody knows.
    assert found["sales"]["idleGpuHours"] == found["sales"]["knownGpuHours"]
    assert found["research"]["idleGpuHours"] < found["research"]["knownGpuHours"]
    [pod] = eventually(idle, MINUTES_S)
    assert (pod["namespace"], pod["pod"], pod["container"]) == ("sales", "sleeper", "main")
    assert (pod["cards"], pod["gpus"], pod["memoryMiB"]) == (1, 0.2, SHARE_MIB["sleeper"])
    assert (pod["node"], pod["lastActive"]) == (NODE, None)
    collector = f"--as=system:serviceaccount:{NAMESPACE}:gpupool-history"
    for wrong in (("create", "pods"), ("patch", "deployments"), ("get", "secrets")):
        assert admin.run("auth", "can-i", *wrong, "-A", collector).out.strip() == "no"


def test_who_may_not_ask_agents_is_told_so_and_sees_the_rest(
    used_mib: dict[str, int], viewer: Path
) -> None:
    def done(*words: str) -> Any:
        return CliRunner().invoke(gpupool, [*words, "--kubeconfig", str(viewer)])

    listed = done("gpu", "list", "-o", "json")
    assert listed.exit_code == 0
    assert "pods/portforward" in listed.stderr
    [card] = json.loads(listed.stdout)["items"]
    assert (card["memoryMiB"], card["memoryUsedMiB"], card["usedBy"]) == (16130, None, None)
    for command in ("report", "idle"):
        refused = done(command)
        assert refused.exit_code == 1
        assert "you may not ask the collector" in refused.stderr
