import os
from pathlib import Path

import pytest

from gpupool.agent.walls import WallRefused
from gpupool.hardware.memory_limits import MemoryLimits
from gpupool.hardware.simdriver import NodeFiles, read_cards
from gpupool.hardware.simulated_limits import SimulatedLimits
from gpupool.local.node_gpus import Cards, NodeGpus
from kubeclient.kubeletapi.messages import Mount
from localkube.kubelet.node_files import node_hardware
from localkube.kubelet.node_hooks import Adjustment, StartingContainer

TYPE = "two-cards"
UUID = "GPU-00000000-0000-0000-0000-000000000000"


def gpus(directory: Path, *, real: bool = False) -> NodeGpus:
    made = NodeGpus(directory, {TYPE: Cards("Tesla T4", 15109, 2)}, real)
    assert made.node_added("n", TYPE)
    return made


ASKING = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
LIMITER = Mount("/usr/local/gpupool", "/opt/gpupool", read_only=True)


def shown(
    made: NodeGpus,
    variables: dict[str, str],
    *,
    own_view: bool = True,
    mounts: tuple[Mount, ...] = (),
) -> Adjustment:
    return made.adjust(StartingContainer("n", ASKING, variables, mounts, own_view, {}, ""))


def test_a_node_of_another_machine_takes_no_device_plugins(tmp_path: Path) -> None:
    made = gpus(tmp_path)
    assert not made.node_added("m", "no-cards")
    assert not node_hardware(tmp_path, "m").exists()


@pytest.mark.parametrize(
    ("spec", "is_shown"),
    [
        ({"resources": {"limits": {"nvidia.com/gpu": "1"}}}, True),
        ({"resources": {"limits": {"aliyun.com/gpu-mem": "1"}}}, True),
        ({"resources": {"limits": {"cpu": "1"}}}, False),
        ({"securityContext": {"privileged": True}}, True),
        ({}, False),
    ],
)
def test_a_variable_alone_shows_no_card(
    tmp_path: Path, spec: dict[str, object], is_shown: bool
) -> None:
    start = StartingContainer("n", spec, {"NVIDIA_VISIBLE_DEVICES": UUID}, (), True, {}, "")
    assert bool(gpus(tmp_path).adjust(start).binds) is is_shown


def test_a_driver_has_the_cards_of_its_machine(tmp_path: Path) -> None:
    gpus(tmp_path)
    cards = read_cards(NodeFiles(node_hardware(tmp_path, "n")))
    assert [(card.name, card.memory_mib) for card in cards] == [("Tesla T4", 15109)] * 2


@pytest.mark.parametrize("variables", [{}, {"NVIDIA_VISIBLE_DEVICES": "void"}])
@pytest.mark.parametrize("real", [True, False])
def test_without_cards_nothing_is_shown(
    tmp_path: Path, variables: dict[str, str], real: bool
) -> None:
    assert shown(gpus(tmp_path, real=real), variables) == Adjustment({}, (), ())


def test_the_driver_is_put_where_older_images_look_for_it(tmp_path: Path) -> None:
    variables = {
        "NVIDIA_VISIBLE_DEVICES": UUID,
        "PATH": "/bin",
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
    }
    found = shown(gpus(tmp_path), variables)
    assert found.variables == {
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64:/usr/local/nvidia/lib",
        "PATH": "/usr/local/nvidia/bin:/bin",
    }
    assert {bind.target: bind.read_only for bind in found.binds} == {
        "/usr/local/nvidia/lib": True,
        "/usr/local/nvidia/bin": True,
        "/usr/local/nvidia/state": False,
    }


def test_a_limited_container_finds_the_limiter_before_the_driver(tmp_path: Path) -> None:
    made = gpus(tmp_path)
    found = shown(made, {"NVIDIA_VISIBLE_DEVICES": UUID}, mounts=(LIMITER,))
    assert found.variables["LD_LIBRARY_PATH"] == "/usr/local/gpupool:/usr/local/nvidia/lib"


def test_without_namespaces_the_driver_is_used_in_its_place(tmp_path: Path) -> None:
    made = gpus(tmp_path)
    found = shown(made, {"NVIDIA_VISIBLE_DEVICES": UUID, "PATH": "/bin"}, own_view=False)
    files = made.driver("n")
    assert files is not None
    assert found.variables == {
        "LD_LIBRARY_PATH": str(files.libraries),
        "PATH": f"{files.programs}:/bin",
    }
    assert found.binds == ()


def test_cuda_is_told_which_of_the_machines_own_cards_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = gpus(tmp_path, real=True)
    monkeypatch.setattr("os.listdir", lambda _: ["null", "nvidiactl", "nvidia0"])
    found = shown(made, {"NVIDIA_VISIBLE_DEVICES": UUID})
    assert found.variables == {"CUDA_VISIBLE_DEVICES": UUID}
    assert found.device_files == ("nvidia0", "nvidiactl")
    own = {"NVIDIA_VISIBLE_DEVICES": f"{UUID},b", "CUDA_VISIBLE_DEVICES": "0"}
    assert shown(made, own).variables == {"CUDA_VISIBLE_DEVICES": "0"}
    assert shown(made, {"NVIDIA_VISIBLE_DEVICES": "all"}).variables == {}


LIMITED = {"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": "3"}}}


def start_limited(made: NodeGpus, text: str) -> Adjustment:
    annotations = {"limits.gpupool.io/c": text}
    pod = {"metadata": {"uid": "u", "annotations": annotations}}
    variables = {"NVIDIA_VISIBLE_DEVICES": UUID}
    return made.adjust(StartingContainer("n", LIMITED, variables, (), True, pod, "id"))


def test_a_driver_that_holds_shares_holds_a_container_before_it_starts(tmp_path: Path) -> None:
    made = NodeGpus(tmp_path, {TYPE: Cards("Tesla T4", 15109, 1, "615.71.09")}, False)
    made.node_added("n", TYPE)
    files = NodeFiles(node_hardware(tmp_path, "n"))
    [card] = read_cards(files)
    binds = start_limited(made, f"{card.uuid} 3021 0\n").binds
    # By this link the driver knows the container.
    leaf = files.container("u", "id")
    assert [bind.source for bind in binds if bind.target.endswith("state")] == [f"{leaf}/state"]
    assert os.path.samefile(leaf / "state", files.state)
    share = MemoryLimits(3021 << 20, 3021 << 20)
    assert SimulatedLimits(files.state).get(str(leaf), card.uuid).limits == share
    with pytest.raises(WallRefused, match=r"driver of node n does not hold it: .* no card GPU-x"):
        start_limited(made, "GPU-x 3021 0\n")


def test_an_older_driver_gives_all_containers_the_same_file(tmp_path: Path) -> None:
    made = gpus(tmp_path)
    files = NodeFiles(node_hardware(tmp_path, "n"))
    sources = [bind.source for bind in start_limited(made, "GPU-x 1 0\n").binds]
    assert str(files.state) in sources
    assert not files.containers.exists()
