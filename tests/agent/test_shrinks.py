"""When the agent confirms that a lowered limit is in force, and what it reports."""

import os
from pathlib import Path

import pytest

from gpupool.agent.pod_files import kubelet_volumes
from gpupool.agent.shrinks import IN_FORCE_S, Shrinks
from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.names import ANNOTATION_SHRINKING, ANNOTATION_SHRINKS
from gpupool.contract.resize import ShrinkReport, node_reports
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.hardware.limiter_region import GRANULE, GRANULE_BITS, MAGIC, VERSION, Region
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from tests.agent.nodes import NAME, V100, Node

LIMITS = "GPU-a 1024 0\n"
MIB = 1024 * 1024


def pod(token: str = "7", uid: str = "u", isolation: Isolation = Isolation.LIMIT) -> Obj:
    share = CardShare("GPU-a", 0, 1, 1024, 15)
    annotations = allocation_annotations(
        Allocation((ContainerGpus("c", (share,), isolation),)), now_ns=0
    )
    annotations[ANNOTATION_SHRINKING] = token
    mounts = [
        {"name": "l", "mountPath": "/etc/gpupool"},
        {"name": "r", "mountPath": "/run/gpupool"},
    ]
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": uid, "annotations": annotations},
        "spec": {
            "nodeName": NAME,
            "containers": [{"name": "c", "image": "i", "volumeMounts": mounts}],
            "volumes": [{"name": "l", "downwardAPI": {}}, {"name": "r", "emptyDir": {}}],
        },
    }


class Files:
    """The volumes of a pod, where a kubelet keeps them."""

    def __init__(self, root: Path, uid: str = "u") -> None:
        volumes = root / uid / "volumes"
        self.limits = volumes / "kubernetes.io~downward-api" / "l" / "limits"
        self.region = volumes / "kubernetes.io~empty-dir" / "r" / "region-1"
        self.limits.parent.mkdir(parents=True)
        self.region.parent.mkdir(parents=True)

    def count(self, used: int) -> None:
        region = Region(version=VERSION, card_count=1)
        region.cards[0].uuid = b"GPU-a"
        region.cards[0].word = used // GRANULE << (64 - GRANULE_BITS)
        self.region.write_bytes(MAGIC + bytes(region)[len(MAGIC) :])


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def shrinks(tmp_path: Path) -> Shrinks:
    return Shrinks(kubelet_volumes(tmp_path))


def test_no_report_before_the_limit_has_been_in_force_for_a_while(
    files: Files, shrinks: Shrinks
) -> None:
    files.count(3 * MIB - 100)
    files.limits.write_text("GPU-a 2048 0\n")
    assert shrinks.reports([pod()], 0) == {}
    assert shrinks.reports([pod()], 10) == {}
    files.limits.write_text(LIMITS)
    assert shrinks.reports([pod()], 20) == {}
    assert shrinks.is_waiting
    assert shrinks.reports([pod()], 20 + IN_FORCE_S) == {}
    found = shrinks.reports([pod()], 20.1 + IN_FORCE_S)
    assert found == {"u": ShrinkReport("7", {"c": {"GPU-a": 3}})}
    assert not shrinks.is_waiting


def test_every_lowered_limit_is_checked_again(files: Files, shrinks: Shrinks) -> None:
    files.limits.write_text(LIMITS)
    shrinks.reports([pod()], 0)
    assert shrinks.reports([pod()], 5) == {"u": ShrinkReport("7", {"c": {}})}
    assert shrinks.reports([pod("8")], 6) == {}
    assert shrinks.reports([pod("8")], 8) == {"u": ShrinkReport("8", {"c": {}})}
    assert shrinks.reports([], 9) == {}


@pytest.mark.parametrize("trap", ["link", "pipe", "short"])
def test_a_count_file_that_a_program_replaced_is_not_read(
    files: Files, shrinks: Shrinks, trap: str
) -> None:
    files.limits.write_text(LIMITS)
    if trap == "link":
        files.region.symlink_to("/dev/zero")
    elif trap == "pipe":
        os.mkfifo(files.region)
    else:
        files.region.write_bytes(b"nothing is in use")
    shrinks.reports([pod()], 0)
    assert "cannot be read" in shrinks.reports([pod()], 5)["u"].problem


def test_missing_files_are_reported_with_the_reason(tmp_path: Path) -> None:
    bare = pod()
    bare["spec"]["volumes"] = []
    found = Shrinks(kubelet_volumes(tmp_path)).reports([bare], 0)["u"].problem
    assert found == "container c has no /etc/gpupool: it missed admission"
    found = Shrinks(kubelet_volumes(tmp_path / "no")).reports([pod()], 0)["u"].problem
    assert found.startswith("the agent of its node does not see the files of pods")


async def test_the_agent_reports_on_its_node_until_the_share_has_shrunk(
    node: Node, tmp_path: Path
) -> None:
    await node.create()
    node.insert([V100])
    made = await node.kube.create(PODS, pod(uid=""))
    uid = made["metadata"]["uid"]
    files = Files(tmp_path / "pods", uid)
    files.count(5 * MIB)
    files.limits.write_text(LIMITS)
    async with node.agent(volumes=kubelet_volumes(tmp_path / "pods")):

        async def is_reported() -> bool:
            report = node_reports(await node.get()).get(uid)
            return report == ShrinkReport("7", {"c": {"GPU-a": 5}})

        await node.wait(is_reported)
        change = {"metadata": {"annotations": {ANNOTATION_SHRINKING: None}}}
        await node.kube.patch(PODS.path("default", "p"), change)

        async def is_forgotten() -> bool:
            return ANNOTATION_SHRINKS not in (await node.get())["metadata"].get("annotations", {})

        await node.wait(is_forgotten)
