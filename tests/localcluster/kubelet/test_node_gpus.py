from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles, read_cards
from gpupool.localcluster.kubelet.node_files import node_driver
from gpupool.localcluster.kubelet.node_gpus import NodeGpus
from gpupool.localcluster.kubelet.settings import Cards

TYPE = "two-cards"
UUID = "GPU-00000000-0000-0000-0000-000000000000"


def gpus(directory: Path, *, real: bool = False) -> NodeGpus:
    made = NodeGpus(directory, {TYPE: Cards("Tesla T4", 15109, 2)}, real)
    made.make_driver("n", TYPE)
    return made


def test_a_driver_has_the_cards_of_its_machine(tmp_path: Path) -> None:
    gpus(tmp_path)
    cards = read_cards(NodeFiles(node_driver(tmp_path, "n")))
    assert [(card.name, card.memory_mib) for card in cards] == [("Tesla T4", 15109)] * 2


@pytest.mark.parametrize("variables", [{}, {"NVIDIA_VISIBLE_DEVICES": "void"}])
@pytest.mark.parametrize("real", [True, False])
def test_without_cards_nothing_is_shown(
    tmp_path: Path, variables: dict[str, str], real: bool
) -> None:
    shown = gpus(tmp_path, real=real).shown("n", variables, own_view=True)
    assert (shown.variables, shown.binds, shown.device_files) == ({}, (), False)


def test_the_driver_is_put_where_older_images_look_for_it(tmp_path: Path) -> None:
    variables = {
        "NVIDIA_VISIBLE_DEVICES": UUID,
        "PATH": "/bin",
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
    }
    shown = gpus(tmp_path).shown("n", variables, own_view=True)
    assert shown.variables == {
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64:/usr/local/nvidia/lib",
        "PATH": "/usr/local/nvidia/bin:/bin",
    }
    assert {bind.target: bind.read_only for bind in shown.binds} == {
        "/usr/local/nvidia/lib": True,
        "/usr/local/nvidia/bin": True,
        "/usr/local/nvidia/state": False,
    }


def test_a_limited_container_finds_the_limiter_before_the_driver(tmp_path: Path) -> None:
    made = gpus(tmp_path)
    shown = made.shown("n", {"NVIDIA_VISIBLE_DEVICES": UUID}, own_view=True, limited=True)
    assert shown.variables["LD_LIBRARY_PATH"] == "/usr/local/gpupool:/usr/local/nvidia/lib"


def test_without_namespaces_the_driver_is_used_in_its_place(tmp_path: Path) -> None:
    made = gpus(tmp_path)
    shown = made.shown("n", {"NVIDIA_VISIBLE_DEVICES": UUID, "PATH": "/bin"}, own_view=False)
    files = made.driver("n")
    assert files is not None
    assert shown.variables == {
        "LD_LIBRARY_PATH": str(files.libraries),
        "PATH": f"{files.programs}:/bin",
    }
    assert shown.binds == ()


def test_cuda_is_told_which_of_the_machines_own_cards_to_use(tmp_path: Path) -> None:
    made = gpus(tmp_path, real=True)
    shown = made.shown("n", {"NVIDIA_VISIBLE_DEVICES": UUID}, own_view=True)
    assert shown.variables == {"CUDA_VISIBLE_DEVICES": UUID}
    assert shown.device_files
    own = {"NVIDIA_VISIBLE_DEVICES": f"{UUID},b", "CUDA_VISIBLE_DEVICES": "0"}
    assert made.shown("n", own, own_view=True).variables == {"CUDA_VISIBLE_DEVICES": "0"}
    assert made.shown("n", {"NVIDIA_VISIBLE_DEVICES": "all"}, own_view=True).variables == {}
