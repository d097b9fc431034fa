"""The chart's idle policy: with its rights only, on a whole local cluster. Time is the test's own:
the history says what happened in the hours after the pods began."""

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.history.facts import Held, pod_facts
from gpupool.history.idle_keeper import Keeper
from gpupool.history.idle_policy import IdlePolicy
from gpupool.history.pages import FileHistory
from gpupool.history.samples import Sample
from gpupool.history.series import Key, Kind
from gpupool.history.store import Entry, Store
from gpupool.testing import Cluster
from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.errors import Refused
from kubeclient.events import Recorder
from kubeclient.https import connected
from kubeclient.objects import Obj
from kubeclient.resources import DEPLOYMENTS
from testbed.find_kubectl import ensure_kubectl
from tests.deploy.test_chart import CHART, helm, rendered
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import Kubectl

pytestmark = [pytest.mark.clients, pytest.mark.kubectl]

HOUR_MS = 3_600_000
SHARE_MS = HOUR_MS // 15  # one of 15 units of a card
ON = ("--set", "history.enabled=true", "--set", "history.idlePolicy.enabled=true")
LIMITS = {"resources": {"limits": {"aliyun.com/gpu-mem": 1}}}


def deployment(name: str) -> Obj:
    container = {"name": "main", "image": "cheyang/gpu-player:v2", **LIMITS}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    program = ensure_kubectl()
    if program is None:
        pytest.skip("NO KUBECTL: the idle policy was not tried.")
    with Cluster(config={"pools": list(SHARED_POOLS)}) as cluster:
        here = tmp_path_factory.mktemp("kubectl")
        found = Kubectl(program, cluster.kubeconfig, here, "default")
        parts = ("service-accounts", "idle-policy")
        files = [word for part in parts for word in ("-s", f"templates/{part}.yaml")]
        found.within("kube-system")(
            "apply", "-f", "-", stdin=rendered("second-scheduler", *ON, *files)
        )
        found.apply(deployment("trainer"), deployment("worker"), deployment("kept"))
        found("label", "deployment", "kept", "gpupool.io/keep-idle=true")
        for name in ("trainer", "worker", "kept"):
            found("rollout", "status", f"deployment/{name}", "--timeout=120s")
        yield found


@contextlib.asynccontextmanager
async def as_collector(kubectl: Kubectl, directory: Path) -> AsyncIterator[Kube]:
    """A client with the token of the collector, which has the rights of the chart."""
    config = yaml.safe_load(kubectl("config", "view", "--raw", "--minify"))
    token = kubectl.within("kube-system")("create", "token", "gpupool-history").strip()
    config["users"][0]["user"] = {"token": token}
    path = directory / "collector.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    access = await find_access({}, kubeconfig=str(path))
    async with connected(access, "test") as kube:
        yield kube


@dataclass
class Times:
    """Hours after the pods began, and what their history says of them."""

    kubectl: Kubectl
    directory: Path
    began_ms: int
    hours: float = 0

    def now(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.seconds(), datetime.UTC)

    def seconds(self) -> float:
        return self.began_ms / 1000 + self.hours * 3600

    def held(self) -> list[Held]:
        pods = self.kubectl.json("get", "pods")["items"]
        return [each for pod in pods for each in pod_facts(pod)]

    def rest(self, hours: int, busy: str = "", silent: str = "") -> None:
        """All pods rest, but those of `busy`; of those of `silent` nobody tells anything."""
        held = self.held()
        with Store(self.directory / "history.sqlite") as store:
            for hour in range(int(self.hours), int(self.hours) + hours):
                start = self.began_ms + hour * HOUR_MS
                found = {
                    Key(Kind.CONTAINER, f"{each.namespace}/{each.pod}/{each.container}"): Entry(
                        Sample(
                            seen=HOUR_MS,
                            given=SHARE_MS,
                            told=0 if each.workload == silent else SHARE_MS,
                            idle=0 if each.workload in (busy, silent) else SHARE_MS,
                        )
                    )
                    for each in held
                }
                store.add(start, start + HOUR_MS, found)
        self.hours += hours


async def act(times: Times, *rests: dict[str, object]) -> None:
    """After each rest, a round of the policy."""
    async with as_collector(times.kubectl, times.directory) as kube:
        recorder = Recorder(kube, "gpupool-history", times.now)
        history = FileHistory(times.directory / "history.sqlite")
        policy = IdlePolicy(4 * 3600, 24 * 3600, frozenset({"kube-system"}))
        keeper = Keeper(kube, history, policy, recorder, times.seconds)
        writing = asyncio.create_task(recorder.run())
        try:
            for rest in rests:
                times.rest(**rest)  # type: ignore[arg-type]
                await keeper.round(times.held())
            while any(not queue.empty() for queue in recorder._queues):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)


def replicas(kubectl: Kubectl, name: str) -> str:
    return kubectl.field(".spec.replicas", "deployment", name)


def said(kubectl: Kubectl, name: str, reason: str) -> list[str]:
    events = kubectl.json("get", "events")["items"]
    return [
        each["message"]
        for each in events
        if each["involvedObject"]["name"] == name and each["reason"] == reason
    ]


async def test_an_idle_workload_is_warned_then_scaled_to_zero_and_comes_back(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    times = Times(kubectl, tmp_path, int(datetime.datetime.now(datetime.UTC).timestamp() * 1000))
    await act(times, {"hours": 3}, {"hours": 2, "busy": "Deployment/worker"})
    [warning] = said(kubectl, "trainer", "GpuIdle")
    assert "It holds 0.13 GPUs and has not used them since" in warning
    assert replicas(kubectl, "trainer") == "2"
    await act(times, {"hours": 18, "silent": "Deployment/worker"})
    assert replicas(kubectl, "trainer") == "2"  # idle for 23 hours
    await act(times, {"hours": 3, "silent": "Deployment/worker"})
    assert replicas(kubectl, "trainer") == "0"
    [done] = said(kubectl, "trainer", "GpuIdleScaledToZero")
    assert "gpupool idle --restore Deployment/trainer -n default" in done
    for name in ("worker", "kept"):  # works and then is unknown; has the label
        assert replicas(kubectl, name) == "2"
        assert not said(kubectl, name, "GpuIdle")

    where = ("--kubeconfig", str(kubectl.kubeconfig))
    restore = ["idle", "--restore", "Deployment/trainer", "-n", "default", *where]
    restored = await asyncio.to_thread(CliRunner().invoke, gpupool, restore)
    assert restored.output == "default/Deployment/trainer has 2 replicas again.\n"
    assert "gpupool.io/idle" not in kubectl.field(".metadata.annotations", "deployment", "trainer")
    kubectl("rollout", "status", "deployment/trainer", "--timeout=120s")
    await act(times, {"hours": 1})
    assert replicas(kubectl, "trainer") == "2"


async def test_nothing_happens_while_agents_are_silent(kubectl: Kubectl, tmp_path: Path) -> None:
    times = Times(kubectl, tmp_path, int(datetime.datetime.now(datetime.UTC).timestamp() * 1000))
    name = "Deployment/worker"
    await act(times, {"hours": 40})
    assert len(said(kubectl, "worker", "GpuIdle")) == 1
    times.rest(21)
    await act(times, {"hours": 1, "silent": name})  # known for nearly all of the time, but not now
    assert replicas(kubectl, "worker") == "2"
    await act(times, {"hours": 4})
    assert replicas(kubectl, "worker") == "0"


OWN_NOTE = {"gpupool.io/idle-warned": "2026-01-01T00:00:00Z"}
CONTAINER = {"name": "main", "image": "evil"}
FORBIDDEN = {
    "another image": {"spec": {"template": {"spec": {"containers": [CONTAINER]}}}},
    "more replicas": {"spec": {"replicas": 9}},
    "fewer replicas": {"spec": {"replicas": 1}},
    "zero without a note": {"spec": {"replicas": 0}},
    "zero with a false note": {
        "metadata": {"annotations": {"gpupool.io/idle-replicas": "9"}},
        "spec": {"replicas": 0},
    },
    "a note alone": {"metadata": {"annotations": {"gpupool.io/idle-replicas": "9"}}},
    "an annotation of others": {"metadata": {"annotations": {"other": "x"}}},
    "a label": {"metadata": {"labels": {"gpupool.io/keep-idle": "false"}}},
    "an owner": {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]
        }
    },
    "a finalizer": {"metadata": {"finalizers": ["a.b/c"]}},
    "paused": {"spec": {"paused": True}},
}


async def test_a_stolen_token_of_the_collector_changes_nothing_else(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    path = DEPLOYMENTS.path("default", "kept")
    dry = {"dryRun": "All"}
    async with as_collector(kubectl, tmp_path) as kube:
        for patch in FORBIDDEN.values():
            with pytest.raises(Refused, match="gpupool-history may"):
                await kube.patch(path, patch, query=dry)
        await kube.patch(path, {"metadata": {"annotations": OWN_NOTE}}, query=dry)
        with pytest.raises(Refused):
            await kube.delete(DEPLOYMENTS, "kept", "default")
        with pytest.raises(Refused):
            await kube.patch(
                DEPLOYMENTS.path("default", "kept", "scale"), {"spec": {"replicas": 0}}
            )


def test_the_chart_gives_no_such_right_by_default() -> None:
    off = rendered("second-scheduler", "--set", "history.enabled=true")
    assert "idle" not in off
    warns = rendered("second-scheduler", *ON, "--set", "history.idlePolicy.scaleToZeroHours=0")
    [role] = (
        each
        for each in yaml.safe_load_all(warns)
        if each
        and each["metadata"]["name"] == "gpupool:idle-policy"
        and each["kind"][-4:] == "Role"
    )
    assert role["rules"][-1]["verbs"] == ["get"]
    assert "--idle-scale-to-zero" not in warns


def test_the_namespace_of_the_release_is_always_left_alone() -> None:
    nobody = ("--set", "history.idlePolicy.exceptNamespaces=null")
    assert "--idle-except=kube-system" in rendered("second-scheduler", *ON, *nobody)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("history.idlePolicy.enabled=true", "needs history.enabled=true"),
        ("history.enabled=true,history.idlePolicy.enabled=true,history.idlePolicy.warnHours=24",
         "must be more than warnHours"),
        ("history.idlePolicy.warnHours=0", "values don't meet the specifications"),
        ("history.idlePolicy.exceptNamespaces={a=b}", "values don't meet the specifications"),
    ],
)  # fmt: skip
def test_a_policy_that_means_nothing_is_refused(values: str, words: str) -> None:
    done = helm("template", "gpupool", str(CHART), "--set", values)
    assert done.returncode != 0
    assert words in done.stderr
