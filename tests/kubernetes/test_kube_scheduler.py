"""The scheduler on a real kube-apiserver, and the extender asked by a real kube-scheduler.

No kubelets: pods are bound and stay Pending, which is all that a scheduler is about.
"""

import asyncio
import base64
import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gpupool.callers import ServerTls, TlsFiles
from gpupool.contract.extender_messages import ExtenderArgs
from gpupool.contract.names import EXTENDER_PROFILE
from gpupool.contract.planned_moves import PlannedMove
from gpupool.core.gpu import CardHealth
from gpupool.health import Address
from gpupool.orders.planned_moves import plan_move
from gpupool.scheduler import extender_program, unasked_pods
from gpupool.scheduler.elected import LEASE
from gpupool.scheduler.extender import Extender
from gpupool.scheduler.extender_program import ExtenderSettings, run_extender
from gpupool.scheduler.kube_scheduler_config import NO_TLS, ExtenderTls, kube_scheduler_config
from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.errors import AlreadyExists
from kubeclient.https import connected
from kubeclient.lease import Candidacy
from kubeclient.objects import Obj
from kubeclient.resources import EVENTS, PODS, PRIORITY_CLASSES, SERVICE_ACCOUNTS
from kubeclient.times import stamp
from testbed import build
from testbed.controlplane import ControlPlane
from testbed.processes import Child, free_port
from tests.scheduler.world import (
    CARD_UNITS,
    POLICY,
    add_node,
    add_pods,
    assert_no_card_over,
    bound,
    gpu_pod,
    scheduling,
    units_by_card,
)

pytestmark = pytest.mark.kubernetes

HALF = CARD_UNITS // 2


@pytest.fixture
def plane(able: None) -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        yield running


@contextlib.asynccontextmanager
async def client(plane: ControlPlane) -> AsyncIterator[Kube]:
    access = await find_access({}, kubeconfig=str(plane.kubeconfig))
    async with connected(access, "test") as kube:
        with contextlib.suppress(AlreadyExists):
            account = {"metadata": {"name": "default", "namespace": "default"}}
            await kube.create(SERVICE_ACCOUNTS, account)
        yield kube


@contextlib.asynccontextmanager
async def extended_kube_scheduler(
    plane: ControlPlane,
    kube: Kube,
    folder: Path,
    tls: ServerTls | None = None,
    shown: ExtenderTls = NO_TLS,
    *,
    is_old: bool = False,
) -> AsyncIterator[Child]:
    """A real kube-scheduler that asks an extender in this process. `is_old`: its configuration has
    no profile for GPUs yet."""
    port = free_port()
    listening = asyncio.Event()
    candidacy = Candidacy(LEASE, "extender")
    settings = ExtenderSettings(POLICY, Address("127.0.0.1", port), candidacy, tls)
    task = asyncio.create_task(run_extender(kube, settings, lambda _port: listening.set()))
    await listening.wait()
    url = f"http{'s' if tls else ''}://127.0.0.1:{port}"
    config = kube_scheduler_config(url, shown, kubeconfig=str(plane.kubeconfig))
    if is_old:
        del config["profiles"]
    file = folder / "config.yaml"
    file.write_text(json.dumps({**config, "leaderElection": {"leaderElect": False}}))
    command = [str(build.ensure("kube-scheduler")), f"--config={file}", "--secure-port=0", "-v=2"]
    child = await asyncio.to_thread(Child, "kube-scheduler", command, folder / "kube-scheduler.log")
    try:
        yield child
    finally:
        await asyncio.to_thread(child.stop)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def waiting(name: str, units: int, scheduler: str = EXTENDER_PROFILE) -> Obj:
    return gpu_pod(name, units=units, schedulerName=scheduler)


async def messages(kube: Kube, name: str) -> list[str]:
    return [
        event.get("message", "")
        for event in (await kube.list(EVENTS)).items
        if event["involvedObject"]["name"] == name
    ]


async def test_ours_binds_on_a_real_api_server(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        for node in range(10):
            await add_node(kube, f"n{node}", 8)
        async with scheduling(kube):
            await add_pods(kube, *(gpu_pod(f"p{i}", units=HALF) for i in range(170)))
            pods = await bound(kube, 160, within_s=60)
        assert set(units_by_card(pods).values()) == {CARD_UNITS}


async def test_kube_scheduler_fills_cards_through_the_extender(
    plane: ControlPlane, tmp_path: Path
) -> None:
    async with client(plane) as kube:
        for node in range(2):
            await add_node(kube, f"n{node}", 2)
        async with extended_kube_scheduler(plane, kube, tmp_path) as child:
            await add_pods(kube, *(waiting(f"p{i}", HALF) for i in range(8)))
            pods = await bound(kube, 8, within_s=60)
            assert child.running
        assert_no_card_over(pods)
        assert set(units_by_card(pods).values()) == {CARD_UNITS}


def secret_files(folder: Path) -> dict[str, str]:
    """The Secrets that the chart makes, as files."""
    program = Path(sys.executable).with_name("helm")
    command = [str(program), "template", "gpupool", "deploy/gpupool", "--set=mode=extender"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    files = {}
    for each in yaml.safe_load_all(done.stdout):
        if each and each["kind"] == "Secret":
            for key, text in each["data"].items():
                file = folder / f"{each['metadata']['name']}-{key}"
                file.write_bytes(base64.b64decode(text))
                files[file.name] = str(file)
    return files


def show(certificate: dict[str, str], folder: Path) -> tuple[str, str]:
    """Puts a client certificate and its key where kube-scheduler finds them."""
    for part in ("crt", "key"):
        shutil.copy(certificate[f"gpupool-extender-client-tls.{part}"], folder / f"shown.{part}")
    return str(folder / "shown.crt"), str(folder / "shown.key")


def tls_of(files: dict[str, str]) -> ServerTls:
    server = (files["gpupool-extender-tls.crt"], files["gpupool-extender-tls.key"])
    return ServerTls(TlsFiles(*server, files["gpupool-extender-client-ca.crt"]))


async def told(kube: Kube, name: str, words: str) -> None:
    """Waits until an event of the pod says so."""
    async with asyncio.timeout(60):
        while not any(words in text for text in await messages(kube, name)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_kube_scheduler_takes_a_certificate_that_the_extender_knows_from_its_file(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """First it shows the certificate of another installation, and is refused."""
    (tmp_path / "other").mkdir()
    files, others = secret_files(tmp_path), secret_files(tmp_path / "other")
    server = (files["gpupool-extender-tls.crt"], "gpupool-extender.default.svc")
    shown = ExtenderTls(*server, *show(others, tmp_path))
    async with client(plane) as kube:
        await add_node(kube, "n", 1)
        async with extended_kube_scheduler(plane, kube, tmp_path, tls_of(files), shown):
            await add_pods(kube, waiting("a", HALF))
            await told(kube, "a", "Post ")  # an error of the connection
            show(files, tmp_path)
            await add_pods(kube, waiting("b", HALF))
            await bound(kube, 2, within_s=60)


async def test_a_kube_scheduler_without_a_certificate_is_refused(
    plane: ControlPlane, tmp_path: Path
) -> None:
    files = secret_files(tmp_path)
    shown = ExtenderTls(files["gpupool-extender-tls.crt"], "gpupool-extender.default.svc")
    async with client(plane) as kube:
        await add_node(kube, "n", 1)
        async with extended_kube_scheduler(plane, kube, tmp_path, tls_of(files), shown):
            await add_pods(kube, waiting("a", HALF))
            await told(kube, "a", "code 401")


async def test_a_pod_that_waits_is_bound_soon_after_a_release(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """Node totals would allow it; one card does not. No event but ours tells kube-scheduler."""
    async with client(plane) as kube:
        await add_node(kube, "n", 2)
        async with extended_kube_scheduler(plane, kube, tmp_path):
            await add_pods(kube, waiting("a", HALF + 1), waiting("b", HALF + 1))
            await bound(kube, 2, within_s=60)
            await add_pods(kube, waiting("c", HALF))
            await told(kube, "c", "Insufficient GPU Memory in one device")
            await kube.delete(PODS, "a", "default", options={"gracePeriodSeconds": 0})
            pods = await bound(kube, 2, within_s=30)
        assert {pod["metadata"]["name"] for pod in pods} == {"b", "c"}
        assert_no_card_over(pods)


@pytest.mark.parametrize("scheduler", [EXTENDER_PROFILE, "default-scheduler"])
async def test_a_pod_that_fits_only_outside_the_sample_is_led_there(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str
) -> None:
    """The cards of all nodes but one are ill, which kube-scheduler does not know."""
    filtered = Extender.filter

    def without_the_good_one(extender: Extender, args: ExtenderArgs) -> Obj:
        """As if it were in no sample."""
        names = tuple(name for name in args.names if name != "good") or args.names
        return filtered(extender, replace(args, names=names))

    monkeypatch.setattr(Extender, "filter", without_the_good_one)
    async with client(plane) as kube:
        await add_node(kube, "good", 1)
        for number in range(230):
            await add_node(kube, f"n{number}", 1, health=CardHealth.UNHEALTHY)
        async with extended_kube_scheduler(plane, kube, tmp_path):
            await add_pods(kube, waiting("p", HALF, scheduler))
            [pod] = await bound(kube, 1, within_s=60)
        assert pod["spec"]["nodeName"] == "good"


async def test_pods_of_the_profile_alone_are_asked_about_with_a_sample_of_100_nodes(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 300 nodes kube-scheduler looks at 48 %, if nobody tells it otherwise."""
    offered: dict[str, int] = {}
    filtered = Extender.filter

    def counted(extender: Extender, args: ExtenderArgs) -> Obj:
        offered[args.pod["metadata"]["name"]] = len(args.names)
        return filtered(extender, args)

    monkeypatch.setattr(Extender, "filter", counted)
    async with client(plane) as kube:
        for number in range(300):
            await add_node(kube, f"n{number}", 1)
        async with extended_kube_scheduler(plane, kube, tmp_path) as child:
            await add_pods(
                kube,
                waiting("in-the-profile", HALF),
                waiting("by-default", HALF, "default-scheduler"),
                waiting("without-gpus", 0, "default-scheduler"),
            )
            pods = await bound(kube, 3, within_s=60)
            log = child.log.read_text()
    assert offered == {"in-the-profile": 100, "by-default": 144}
    assert re.search(r'pod="default/without-gpus" .* feasibleNodes=144\b', log)
    assert sum(units_by_card(pods).values()) == 2 * HALF


async def test_a_pod_of_the_profile_evicts_those_of_one_card(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """By the totals of a node any two of its pods would do."""
    low = [waiting(f"low{i}", HALF) for i in range(12)]
    for each in low:  # there is no kubelet that would end them
        each["spec"]["terminationGracePeriodSeconds"] = 0
    high = waiting("high", CARD_UNITS)
    high["spec"]["priorityClassName"] = "urgent"
    async with client(plane) as kube:
        await kube.create(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 1000})
        for node in range(3):
            await add_node(kube, f"n{node}", 2)
        async with extended_kube_scheduler(plane, kube, tmp_path):
            await add_pods(kube, *low)
            await bound(kube, len(low), within_s=60)
            await add_pods(kube, high)
            async with asyncio.timeout(60):
                while not (await kube.get(PODS, "high", "default"))["spec"].get("nodeName"):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        pods = (await kube.list(PODS)).items
        assert len(pods) == len(low) - 2 + 1
        assert_no_card_over(pods)


async def test_pods_of_planned_moves_get_their_nodes_and_cards(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """By themselves they would fill one card."""
    planned = {f"p{at}": f"GPU-n{at}-1" for at in range(4)}
    pods = [waiting(name, CARD_UNITS // 4) for name in planned]
    for at, pod in enumerate(pods):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"r{at}", "uid": f"u{at}"}
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    async with client(plane) as kube:
        for node in range(6):
            await add_node(kube, f"n{node}", 2)
        now_s = time.time()
        for at, uuid in enumerate(planned.values()):
            move = PlannedMove(f"left{at}", f"u{at}", (uuid,), stamp(now_s + 600))
            await plan_move(kube, f"n{at}", move, now_s)
        async with extended_kube_scheduler(plane, kube, tmp_path):
            await add_pods(kube, *pods)
            found = await bound(kube, len(pods), within_s=60)
    given = {pod["metadata"]["name"]: list(units_by_card([pod])) for pod in found}
    assert given == {name: [uuid] for name, uuid in planned.items()}


async def test_a_pod_for_a_profile_that_kube_scheduler_does_not_have_says_so(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extender_program, "_LOOK_S", 0.1)
    monkeypatch.setattr(unasked_pods, "PATIENCE_S", 3.0)
    async with client(plane) as kube:
        await add_node(kube, "n", 1)
        async with extended_kube_scheduler(plane, kube, tmp_path, is_old=True):
            await add_pods(kube, waiting("known", 1, "default-scheduler"), waiting("p", 1))
            await told(kube, "p", f"has the profile {EXTENDER_PROFILE}: `gpupool scheduler config`")
            [pod] = await bound(kube, 1)
        assert pod["metadata"]["name"] == "known"
        assert len(await messages(kube, "p")) == 1
